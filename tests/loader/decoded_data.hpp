// Data sets of which some samples do not decode, and what a loader that decodes has to deliver.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/loader.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"

namespace forebay::test {

/// Tensors of two fields; `bad` samples are too short.
class DecodedData {
 public:
  DecodedData(const std::string& directory, std::uint64_t count, std::set<std::uint64_t> bad = {})
      : bad_(std::move(bad)) {
    std::vector<std::size_t> sizes(count, 48);
    for (const std::uint64_t sample : bad_) sizes[sample] = 7;
    path_ = LmdbBuilder().in_order(count).value_sizes(sizes).build(directory);
    records_ = read_with_liblmdb(directory);
    codec_ = make_codec({.codec = "raw", .schema = schema()}, {});
  }

  static std::string schema() { return "image:u8[16],label:u16[4x4]"; }
  const std::string& path() const { return path_; }
  const std::set<std::uint64_t>& bad() const { return bad_; }
  std::uint64_t entries() const { return records_.size(); }

  /// Of a loader that decodes.
  LoaderOptions decoding(LoaderOptions options) const {
    options.codec = "raw";
    options.schema = schema();
    options.decode = true;
    options.undecodable = bad_.empty() ? Undecodable::fail : Undecodable::skip;
    return options;
  }

  /// Whether `batch` has those of `all` samples that decode, and their fields.
  void expect_decoded(const Batch& batch, std::span<const Sample> all) const {
    std::vector<Sample> good;
    std::ranges::copy_if(all, std::back_inserter(good),
                         [this](const Sample& sample) { return !bad_.contains(sample.id); });
    ASSERT_EQ(batch.samples().size(), good.size());
    std::vector<std::byte> image, label;
    for (std::size_t i = 0; i < good.size(); ++i) {
      ASSERT_EQ(batch.samples()[i].id, good[i].id) << i;
      ASSERT_EQ(batch.samples()[i].position, good[i].position);
      ASSERT_EQ(batch.samples()[i].repeat, good[i].repeat);
      ASSERT_EQ(text(batch.samples()[i].value), records_[good[i].id].value);
      append(good[i].id, image, label);
    }
    ASSERT_TRUE(std::ranges::equal(batch.field(0), image));
    ASSERT_TRUE(std::ranges::equal(batch.field("label"), label));
  }

 private:
  void append(std::uint64_t id, std::vector<std::byte>& image,
              std::vector<std::byte>& label) const {
    std::vector<std::byte> fields[2] = {std::vector<std::byte>(16), std::vector<std::byte>(32)};
    const std::span<std::byte> spans[2] = {fields[0], fields[1]};
    codec_->decode(std::as_bytes(std::span(records_[id].value)), spans);
    image.insert(image.end(), fields[0].begin(), fields[0].end());
    label.insert(label.end(), fields[1].begin(), fields[1].end());
  }

  std::set<std::uint64_t> bad_;
  std::string path_;
  std::vector<OracleRecord> records_;
  std::shared_ptr<const Codec> codec_;
};

}  // namespace forebay::test
