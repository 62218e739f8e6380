// A scan in parts finds what a walk finds, and notices trees that contradict their header.
#include "format/lmdb/scan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/format/lmdb/file_surgery.hpp"
#include "tests/format/lmdb/index_support.hpp"

namespace forebay::lmdb {
namespace {

using test::LmdbBuilder;

/// Looks at the leaves in `parts` parts, each of which travels as bytes.
std::vector<LeafTable> scan(Database& database, std::size_t parts) {
  const TreeFacts facts = facts_of(database);
  const std::vector<PageNumber> leaves = list_leaves(database);
  PlainReader reader(database.snapshot().shared_file());
  std::vector<LeafTable> tables;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t from = leaves.size() * i / parts, to = leaves.size() * (i + 1) / parts;
    const auto bytes = to_bytes(
        count_leaves(facts, std::span(leaves).subspan(from, to - from), reader, database.pages()));
    tables.push_back(part_from_bytes(bytes));
  }
  return tables;
}

class EveryDatabaseScanned : public EveryDatabase {};

TEST_P(EveryDatabaseScanned, PartsAddUpToTheWalk) {
  Database database = open(Engine::pread);
  for (const std::size_t parts : {1, 3, 8}) {
    auto producer = join_parts(facts_of(database), scan(database, parts));
    OwnIndex index(database, std::move(producer));
    expect_equal(*index, database.snapshot().file(), expected_, 5);
  }
}

TEST_P(EveryDatabaseScanned, PartsAddUpToTheKeysOfTheWhole) {
  Database database = open(Engine::pread);
  const auto flags = database.tree().header().flags;
  ByteWriter whole, parts;
  table_of(leaves_of(database), flags).keys().write(whole);
  const auto joined = join_parts(facts_of(database), scan(database, 3));
  if (!counts_are_known(facts_of(database))) {
    joined->table().keys().write(parts);
    EXPECT_TRUE(std::ranges::equal(whole.bytes(), parts.bytes()));
  } else {
    EXPECT_FALSE(joined->table().has_keys());
  }
}

INSTANTIATE_TEST_SUITE_P(Standard, EveryDatabaseScanned, every_standard_database(), name_of_case);

TEST(Scan, ReadsNoLeafWhereTheHeaderProvesTheCounts) {
  const FileSurgery bytes(LmdbBuilder().appended(120).values(2020).delete_every(2));
  Database database = Database::open(bytes.open());
  ASSERT_TRUE(counts_are_known(facts_of(database)));
  PlainReader reader(bytes.open());
  const auto leaves = list_leaves(database);
  const LeafTable table = count_leaves(facts_of(database), leaves, reader, database.pages());
  EXPECT_EQ(reader.counters().requests, 0U);
  EXPECT_EQ(table.samples(), 60U);
}

TEST(Scan, NeighbouringLeavesAreReadTogether) {
  const FileSurgery bytes(LmdbBuilder().appended(20'000).values(300));
  Database database = Database::open(bytes.open());
  PlainReader reader(bytes.open());
  const auto leaves = list_leaves(database);
  count_leaves(facts_of(database), leaves, reader, database.pages());
  EXPECT_LT(reader.counters().requests, leaves.size() / 50);
  EXPECT_LT(reader.counters().bytes, leaves.size() * 4096 * 11 / 10);
}

class Contradicted : public testing::Test {
 protected:
  void expect_corrupt(const std::string& text) {
    try {
      Database database = Database::open(file_.open());
      join_parts(facts_of(database), scan(database, 2));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  }
  FileSurgery file_{LmdbBuilder().in_order(900).values(200, 3000)};
};

TEST_F(Contradicted, CountOfEntries) {
  file_.set_main_entries(899);
  expect_corrupt("the tree's header counts 899");
}

TEST_F(Contradicted, CountOfLeaves) {
  const auto leaves = file_.get<std::uint64_t>(file_.main_tree(16));
  file_.set<std::uint64_t>(file_.main_tree(16), leaves + 1);
  expect_corrupt("its header counts");
  file_.set<std::uint64_t>(file_.main_tree(16), leaves - 1);
  expect_corrupt("more than the");
}

TEST_F(Contradicted, DepthOfTheTree) {
  const auto depth = file_.get<std::uint16_t>(file_.main_tree(6));
  file_.set<std::uint16_t>(file_.main_tree(6), depth + 1);
  expect_corrupt("more than");
  file_.set<std::uint16_t>(file_.main_tree(6), depth - 1);
  expect_corrupt("branch");
}

TEST_F(Contradicted, BranchThatLeadsToItself) {
  file_.set_child(file_.root(), 1, file_.root());
  expect_corrupt("branch");
}

TEST_F(Contradicted, LeafPastTheEnd) {
  file_.set_child(file_.root(), 1, 1U << 30);
  expect_corrupt("page 1073741824");
}

TEST(ScanParts, BytesThatAreNoPartAreRefused) {
  const FileSurgery file(LmdbBuilder().random_order(300).values(0, 5000));
  Database database = Database::open(file.open());
  const auto bytes = to_bytes(scan(database, 1).front());
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_THROW(part_from_bytes(std::span(bytes).first(size)), Error);
  }
}

}  // namespace
}  // namespace forebay::lmdb
