// What the tests of indexes share: leaves found by a walk, and bytes that come through extents
// only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "format/lmdb/known_leaves.hpp"
#include "format/lmdb/leaf_index.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/scan.hpp"
#include "tests/format/lmdb/every_database.hpp"

namespace forebay::lmdb {

/// Reads one request after another.
class PlainReader final : public BulkReader {
 public:
  explicit PlainReader(std::shared_ptr<const File> file) : file_(std::move(file)) {}
  void start(std::span<const ReadRequest> requests) override { requests_ = requests; }
  void finish(const Done& done) override {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      file_->read(requests_[i].offset, requests_[i].into);
      ++counters_.requests;
      counters_.bytes += requests_[i].into.size();
      done(i);
    }
  }
  void cancel() noexcept override { requests_ = {}; }
  BulkCounters counters() const override { return counters_; }
  bool abandoned() const override { return false; }
  std::string describe() const override { return "plain"; }

 private:
  std::shared_ptr<const File> file_;
  std::span<const ReadRequest> requests_;
  BulkCounters counters_;
};

/// The bytes of some extents, and none but these.
class ReadExtents final : public FileBytes {
 public:
  ReadExtents(const File& file, std::span<const FileExtent> extents) {
    for (const FileExtent& extent : extents) {
      std::vector<std::byte> bytes(extent.length);
      file.read(extent.offset, bytes);
      pieces_.emplace_back(extent, std::move(bytes));
    }
  }
  std::span<const std::byte> at(std::uint32_t, std::uint64_t offset,
                                std::uint64_t length) const override {
    for (const auto& [extent, bytes] : pieces_) {
      if (offset >= extent.offset && offset - extent.offset <= extent.length &&
          length <= extent.length - (offset - extent.offset)) {
        return std::span(bytes).subspan(offset - extent.offset, length);
      }
    }
    throw std::logic_error("bytes that no extent names");
  }

 private:
  std::vector<std::pair<FileExtent, std::vector<std::byte>>> pieces_;
};

/// A leaf that owns what it names.
struct OwnedLeaf {
  PageNumber page = 0;
  std::uint32_t records = 0;
  std::vector<LeafRun> runs;
  std::vector<std::byte> first_key;
  std::vector<std::byte> last_key;

  LeafLayout layout() const { return {.page = page, .records = records, .runs = runs}; }
  bool operator==(const OwnedLeaf&) const = default;
};

inline std::vector<OwnedLeaf> leaves_of(Database& database) {
  std::vector<OwnedLeaf> leaves;
  std::vector<LeafRun> runs;
  for (const PageNumber page : list_leaves(database)) {
    const SeenLeaf seen =
        look_at_leaf(database.pages().tree_page(page), database.page_size(), runs);
    leaves.push_back({.page = page,
                      .records = seen.layout.records,
                      .runs = runs,
                      .first_key = {seen.first_key.begin(), seen.first_key.end()},
                      .last_key = {seen.last_key.begin(), seen.last_key.end()}});
  }
  return leaves;
}

inline std::unique_ptr<KnownLeaves> known(const std::vector<OwnedLeaf>& leaves,
                                          std::uint64_t segment_samples = 50,
                                          std::uint64_t segment_leaves = 7) {
  auto result = std::make_unique<KnownLeaves>(segment_samples, segment_leaves);
  for (const OwnedLeaf& leaf : leaves) result->add(leaf.layout());
  return result;
}

inline LeafTable table_of(const std::vector<OwnedLeaf>& leaves, std::uint16_t tree_flags,
                          std::uint64_t segment_samples = 50, std::uint64_t segment_leaves = 7) {
  LeafTableBuilder builder(tree_flags, segment_samples, segment_leaves);
  for (const OwnedLeaf& leaf : leaves) {
    builder.add(SeenLeaf{leaf.layout(), leaf.first_key, leaf.last_key});
  }
  return builder.finish();
}

/// The leaves that a producer hands out, segment by segment, without keys.
inline std::vector<OwnedLeaf> expand_all(LeafProducer& producer) {
  std::vector<OwnedLeaf> leaves;
  for (std::size_t i = 0; i + 1 < producer.directory().size(); ++i) {
    producer.expand(i, [&](const LeafLayout& leaf) {
      leaves.push_back({.page = leaf.page,
                        .records = leaf.records,
                        .runs = {leaf.runs.begin(), leaf.runs.end()}});
    });
  }
  return leaves;
}

/// An index with memory of its own.
class OwnIndex {
 public:
  OwnIndex(Database& database, std::unique_ptr<LeafProducer> producer)
      : memory_(required_bytes(*producer, facts_of(database)) / 8),
        index_(std::move(producer), facts_of(database), database.pages(),
               {.bytes = std::as_writable_bytes(std::span(memory_))}) {}

  LeafIndex& operator*() { return index_; }
  LeafIndex* operator->() { return &index_; }

 private:
  std::vector<std::uint64_t> memory_;
  LeafIndex index_;
};

/// Locates, reads and unpacks. Throws what any of these throws.
inline std::vector<OracleRecord> read_range(RecordIndex& index, const File& file,
                                            std::uint64_t first, std::uint64_t count) {
  std::vector<FileExtent> extents;
  index.extents(first, count, extents);
  const ReadExtents bytes(file, extents);
  std::vector<OracleRecord> records;
  index.unpack(first, count, bytes, [&](const Record& record) {
    EXPECT_EQ(record.sample, first + records.size());
    records.push_back(to_record({record.key, record.value}));
  });
  return records;
}

/// Random ranges, then everything, compared with what liblmdb reads.
inline void expect_equal(LeafIndex& index, const File& file,
                         const std::vector<OracleRecord>& expected, int ranges,
                         std::uint64_t most = 300) {
  std::mt19937_64 random(5);
  const std::uint64_t entries = expected.size();
  ASSERT_EQ(index.entries(), entries);
  for (int i = 0; i < ranges && entries > 0; ++i) {
    const std::uint64_t first = random() % entries;
    const std::uint64_t count = std::min(entries - first, random() % most);
    const auto records = read_range(index, file, first, count);
    ASSERT_EQ(records.size(), count);
    ASSERT_TRUE(std::equal(records.begin(), records.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(first)))
        << "range " << first << " + " << count;
  }
  ASSERT_EQ(read_range(index, file, 0, entries), expected);
}

}  // namespace forebay::lmdb
