// Several roots of a node fill and read one index at the same time.
#include "format/lmdb/leaf_index.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/format/lmdb/file_surgery.hpp"
#include "tests/format/lmdb/index_support.hpp"

namespace forebay::lmdb {
namespace {

class SharedIndex : public testing::Test {
 protected:
  SharedIndex()
      : file_(FileSurgery(test::LmdbBuilder().random_order(300).values(0, 9000).commit_every(40))
                  .open()) {
    Database database = Database::open(file_);
    table_ = table_of(leaves_of(database), database.tree().header().flags, 20, 3);
    facts_ = facts_of(database);
    expected_ = read_all(database);
    memory_.resize(required_bytes(TableLeaves(table_), facts_) / 8);
  }

  /// One root: reads ranges drawn from `seed` through an index of its own over the shared memory.
  void read_ranges(unsigned seed, int ranges) {
    Database database = Database::open(file_);
    LeafIndex index(std::make_unique<TableLeaves>(table_), facts_, database.pages(),
                    {.bytes = std::as_writable_bytes(std::span(memory_))});
    std::mt19937 random(seed);
    for (int i = 0; i < ranges; ++i) {
      const std::uint64_t first = random() % expected_.size();
      const std::uint64_t count = std::min<std::uint64_t>(expected_.size() - first, 40);
      const auto records = read_range(index, *file_, first, count);
      EXPECT_TRUE(std::equal(records.begin(), records.end(),
                             expected_.begin() + static_cast<std::ptrdiff_t>(first)));
    }
  }

  std::shared_ptr<const File> file_;
  LeafTable table_;
  TreeFacts facts_;
  std::vector<OracleRecord> expected_;
  std::vector<std::uint64_t> memory_;
};

TEST_F(SharedIndex, RootsFillItTogether) {
  for (unsigned round = 0; round < 20; ++round) {
    std::ranges::fill(memory_, 0);
    std::vector<std::thread> roots;
    for (unsigned i = 0; i < 4; ++i) {
      roots.emplace_back([&, i] { read_ranges(i + 10 * round, 10); });
    }
    for (std::thread& thread : roots) thread.join();
  }
}

TEST_F(SharedIndex, WhatOneRootHasFilledAnotherCountsAsWell) {
  Database database = Database::open(file_);
  const auto bytes = std::as_writable_bytes(std::span(memory_));
  LeafIndex one(std::make_unique<TableLeaves>(table_), facts_, database.pages(), {.bytes = bytes});
  LeafIndex other(std::make_unique<TableLeaves>(table_), facts_, database.pages(),
                  {.bytes = bytes});
  const std::uint64_t before = other.memory_bytes();
  read_range(one, *file_, 0, 100);
  EXPECT_GT(other.memory_bytes(), before);
  EXPECT_EQ(other.memory_bytes(), one.memory_bytes());
}

TEST_F(SharedIndex, OfAllThatGiveItUpOneWarns) {
  Database database = Database::open(file_);
  const auto bytes = std::as_writable_bytes(std::span(memory_));
  LeafIndex one(std::make_unique<TableLeaves>(table_), facts_, database.pages(), {.bytes = bytes});
  LeafIndex other(std::make_unique<TableLeaves>(table_), facts_, database.pages(),
                  {.bytes = bytes});
  EXPECT_TRUE(other.give_up());
  EXPECT_FALSE(one.give_up());
}

}  // namespace
}  // namespace forebay::lmdb
