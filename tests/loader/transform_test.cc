// Transforms in a loader: image files of many sizes come in one shape, and what becomes of a sample
// depends on run seed, epoch and sample alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/transform.hpp"
#include "format/codec/datum.hpp"
#include "format/lmdb/writer.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

constexpr const char* kSteps =
    "rgb,random-resized-crop=12x10,flip,to-float,normalize=0.485:0.456:0.406/0.229:0.224:0.225";
constexpr std::uint64_t kEntries = 53;

/// JPEG and PNG, gray and color, each of a size of its own.
Bytes image_file(std::uint64_t number) {
  std::mt19937_64 random(number);
  const auto side = [&] { return static_cast<std::uint32_t>(1 + random() % 60); };
  const ImageShape shape{number % 5 == 0 ? 1U : 3U, side(), side()};
  Bytes pixels(shape.bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::byte>(i * 3 + number + random() % 32);
  }
  return number % 3 == 0 ? encode_png(shape, pixels) : encode_jpeg(shape, pixels, 85);
}

class Images {
 public:
  explicit Images(const std::string& directory, const std::map<std::uint64_t, Bytes>& other = {})
      : path_(directory) {
    lmdb::Writer writer(directory, {});
    for (std::uint64_t id = 0; id < kEntries; ++id) {
      const auto found = other.find(id);
      files_.push_back(found == other.end() ? image_file(id) : found->second);
      const std::string key = std::to_string(1000 + id);
      writer.put(std::as_bytes(std::span(key)), files_.back());
    }
    writer.commit();
  }
  const std::string& path() const { return path_; }
  std::span<const std::byte> file(std::uint64_t id) const { return files_[id]; }

 private:
  std::string path_;
  std::vector<Bytes> files_;
};

/// Bytes of a sample in an epoch, from all ranks.
class Collected {
 public:
  void add(const Batch& batch, std::size_t field, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.samples().size(); ++i) {
      const auto value = batch.field(field).subspan(i * bytes, bytes);
      const auto& sample = batch.samples()[i];
      const auto [at, is_new] =
          of_.try_emplace({sample.epoch, sample.id}, value.begin(), value.end());
      EXPECT_TRUE(std::ranges::equal(at->second, value)) << "two ranks differ";
    }
  }
  const std::map<std::pair<std::uint64_t, std::uint64_t>, Bytes>& all() const { return of_; }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Bytes> of_;
};

LoaderOptions options_of_round(std::uint64_t round, std::mt19937_64& random, int ranks) {
  LoaderOptions options(OrderOptions{.batch = static_cast<std::uint64_t>(ranks) + random() % 12},
                        RunOptions{.epochs = 2});
  options.order = static_cast<OrderName>(round % 4);
  if (options.order == OrderName::grouped || options.order == OrderName::in_memory) {
    options.group = 1 + random() % 8;
  }
  if (options.order == OrderName::shuffled && round % 8 >= 4) options.hold = Hold::memory;
  if (options.order != OrderName::strided) options.end = OrderEnd::wrap;
  options.strategy = static_cast<Strategy>(random() % 8);
  options.stage_bytes = std::uint64_t{64} << 20;
  options.decode_threads = static_cast<unsigned>(1 + random() % 3);
  options.decode_ahead = static_cast<unsigned>(random() % 3);
  options.seed = 5;
  return options;
}

TEST(LoaderTransform, BytesDependOnSeedEpochAndSampleAlone) {
  const TemporaryFolder folder;
  const Images images(folder.file("images"));
  const Transform transform = Transform::parse(kSteps);
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < static_cast<std::uint64_t>(test::long_cases(24)); ++round) {
    const int ranks = static_cast<int>(1 + random() % 4);
    LoaderOptions options = options_of_round(round, random, ranks);
    options.transform = kSteps;  // and decode is not said
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + options.to_text());
    Collected collected;
    run_ranks(ranks, static_cast<int>(random() % 3), [&](const auto& comm) {
      Loader loader = Loader::open(comm, images.path(), options);
      EXPECT_EQ(to_string(loader.schema()), "image:f32[3x12x10]");
      while (const auto batch = loader.next()) collected.add(*batch, 0, 4 * 3 * 12 * 10);
      comm->barrier();
    });
    EXPECT_GE(collected.all().size(), 2 * kEntries);
    for (const auto& [key, value] : collected.all()) {
      Bytes expected(value.size());
      const auto [epoch, id] = key;
      transform.apply_to_file(images.file(id), sample_seed(5, epoch, id), expected);
      ASSERT_EQ(value, expected) << "epoch " << epoch << ", sample " << id;
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(LoaderTransform, DecodingIntoOwnMemoryIsTheSame) {
  const TemporaryFolder folder;
  const Images images(folder.file("images"));
  LoaderOptions options(OrderOptions{.batch = 7, .seed = 9}, RunOptions{.epochs = 1});
  options.transform = kSteps;
  Loader loader = Loader::open(self_communicator(), images.path(), options);
  while (const auto batch = loader.next()) {
    Bytes memory(batch->field(0).size());
    const std::span<std::byte> fields[] = {memory};
    loader.decode(*batch, fields);
    EXPECT_TRUE(std::ranges::equal(memory, batch->field(0)));
  }
}

TEST(LoaderTransform, ImagesThatDoNotFitNameTheSampleOrAreSkipped) {
  const TemporaryFolder folder;
  const auto of = [](std::uint32_t height, std::uint32_t width) {
    const ImageShape shape{3, height, width};
    return encode_png(shape, Bytes(shape.bytes(), std::byte{7}));
  };
  std::map<std::uint64_t, Bytes> all;
  for (std::uint64_t id = 0; id < kEntries; ++id) all[id] = of(30, 40);
  all[20] = of(11, 40);
  all[31] = Bytes(100, std::byte{1});
  const Images images(folder.file("images"), all);
  LoaderOptions options(OrderOptions{.batch = 10}, RunOptions{.epochs = 1});
  options.transform = "crop=12:random";
  options.coalesce = 1;
  options.strategy = Strategy::lmm_dio;  // iteration by iteration, so that no rank is done before
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, images.path(), options);
    try {
      while (loader.next()) {
      }
      ADD_FAILURE() << "it fits";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("sample 20"), HasSubstr("crop=12x12"),
                                               HasSubstr("u8[3x11x40]")));
    }
    comm->barrier();
  });
  options.undecodable = Undecodable::skip;
  options.decode = true;
  Loader loader = Loader::open(self_communicator(), images.path(), options);
  std::uint64_t samples = 0;
  while (const auto batch = loader.next()) samples += batch->samples().size();
  ASSERT_EQ(loader.skipped().size(), 2U);
  EXPECT_EQ(loader.skipped()[0].id, 20U);
  EXPECT_EQ(loader.skipped()[1].id, 31U);
  EXPECT_EQ(loader.statistics().skipped, loader.entries() - samples);
}

TEST(LoaderTransform, WhatNeverFitsIsRefusedAtOpenOnAllRanks) {
  const TemporaryFolder folder;
  const Images images(folder.file("images"));
  for (const std::string steps : {"resize=8x8,crop=9", "label:flip", "flop"}) {
    run_ranks(2, 0, [&](const auto& comm) {
      LoaderOptions options(OrderOptions{.batch = 4});
      options.transform = steps;
      EXPECT_THROW(Loader::open(comm, images.path(), options), Error) << steps;
    });
  }
}

TEST(LoaderTransform, TheTextFormImpliesDecoding) {
  const LoaderOptions options =
      LoaderOptions::parse("batch=4,transform=\"rgb,crop=224:center,flip=0.5\"");
  EXPECT_TRUE(options.decode);
  EXPECT_EQ(options.transform, "rgb,crop=224x224,flip");
  EXPECT_EQ(LoaderOptions::parse(options.to_text()).to_text(), options.to_text());
  EXPECT_THROW(LoaderOptions::parse("transform=flop"), Error);
}

}  // namespace
}  // namespace forebay
