// An index delivers what a walk of the tree delivers, or says that it does not fit.
#include "format/lmdb/leaf_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/format/lmdb/file_surgery.hpp"
#include "tests/format/lmdb/index_support.hpp"
#include "tests/support/scale.hpp"

namespace forebay::lmdb {
namespace {

using test::LmdbBuilder;
using testing::HasSubstr;

class EveryDatabaseIndexed : public EveryDatabase {
 protected:
  const File& file(Database& database) { return database.snapshot().file(); }
};

TEST_P(EveryDatabaseIndexed, KnownLeavesDeliverEveryRange) {
  Database database = open(Engine::pread);
  OwnIndex index(database, known(leaves_of(database)));
  expect_equal(*index, file(database), expected_, test::random_cases(40));
}

TEST_P(EveryDatabaseIndexed, TablesDeliverEveryRange) {
  Database database = open(Engine::pread);
  const auto table = table_of(leaves_of(database), database.tree().header().flags);
  OwnIndex index(database, std::make_unique<TableLeaves>(table));
  expect_equal(*index, file(database), expected_, test::random_cases(40));
}

TEST_P(EveryDatabaseIndexed, SingleSamplesTakeTheirPagesOnly) {
  Database database = open(Engine::pread);
  OwnIndex index(database, known(leaves_of(database)));
  std::mt19937_64 random(3);
  for (int i = 0; i < 100 && !expected_.empty(); ++i) {
    const std::uint64_t sample = random() % expected_.size();
    std::vector<FileExtent> extents;
    index->extents(sample, 1, extents);
    ASSERT_LE(extents.size(), 2U);
    EXPECT_EQ(extents[0].length, database.page_size());
    std::uint64_t bytes = 0;
    for (const FileExtent& extent : extents) {
      EXPECT_EQ(extent.offset % database.page_size(), 0U);
      bytes += extent.length;
    }
    EXPECT_LE(bytes, expected_[sample].value.size() + 3 * database.page_size());
    EXPECT_EQ(read_range(*index, file(database), sample, 1).front(), expected_[sample]);
  }
}

INSTANTIATE_TEST_SUITE_P(Standard, EveryDatabaseIndexed, every_standard_database(), name_of_case);

/// A database in memory, with its leaves and records.
class Indexed : public testing::Test {
 protected:
  explicit Indexed(const LmdbBuilder& builder)
      : bytes_(builder),
        file_(bytes_.open()),
        database_(Database::open(file_)),
        leaves_(leaves_of(database_)),
        expected_(read_all(database_)) {}

  std::vector<OracleRecord> read(std::unique_ptr<LeafProducer> producer, std::uint64_t first,
                                 std::uint64_t count) {
    OwnIndex index(database_, std::move(producer));
    return read_range(*index, *file_, first, count);
  }

  FileSurgery bytes_;
  std::shared_ptr<const File> file_;
  Database database_;
  std::vector<OwnedLeaf> leaves_;
  std::vector<OracleRecord> expected_;
};

class SmallRecords : public Indexed {
 protected:
  SmallRecords() : Indexed(LmdbBuilder().in_order(600).values(300).commit_every(50)) {}
};

class RunsAndLeaves : public Indexed {
 protected:
  RunsAndLeaves() : Indexed(LmdbBuilder().random_order(300).values(0, 9000).commit_every(40)) {}
};

TEST_F(SmallRecords, OnlyTheSegmentsThatAreNeededAreExpanded) {
  OwnIndex index(database_, known(leaves_));
  const std::uint64_t before = index->memory_bytes();
  read_range(*index, *file_, 300, 10);
  const std::uint64_t one = index->memory_bytes();
  EXPECT_GT(one, before);
  read_range(*index, *file_, 301, 5);
  EXPECT_EQ(index->memory_bytes(), one);
  read_range(*index, *file_, 0, 600);
  EXPECT_GT(index->memory_bytes(), 5 * (one - before));
}

TEST_F(SmallRecords, RangesThatLeaveTheSamplesAreRefused) {
  OwnIndex index(database_, known(leaves_));
  std::vector<FileExtent> extents;
  EXPECT_THROW(index->extents(600, 1, extents), Error);
  EXPECT_THROW(index->extents(1, ~std::uint64_t{0}, extents), Error);
  index->extents(600, 0, extents);
  EXPECT_TRUE(extents.empty());
}

TEST_F(SmallRecords, MemoryOfAnotherIndexIsRefused) {
  std::vector<std::uint64_t> memory(required_bytes(*known(leaves_), facts_of(database_)) / 8 + 100);
  const auto bytes = std::as_writable_bytes(std::span(memory));
  LeafIndex first(known(leaves_), facts_of(database_), database_.pages(), {.bytes = bytes});
  LeafIndex same(known(leaves_), facts_of(database_), database_.pages(), {.bytes = bytes});
  EXPECT_THROW(
      LeafIndex(known(leaves_, 20), facts_of(database_), database_.pages(), {.bytes = bytes}),
      Error);
  EXPECT_THROW(LeafIndex(known(leaves_), facts_of(database_), database_.pages(),
                         {.bytes = bytes.first(100)}),
               Error);
}

TEST_F(SmallRecords, ReservesWhatItWrites) {
  auto producer = known(leaves_);
  std::vector<std::uint64_t> memory(required_bytes(*producer, facts_of(database_)) / 8);
  std::uint64_t reserved = 0;
  LeafIndex index(std::move(producer), facts_of(database_), database_.pages(),
                  {.bytes = std::as_writable_bytes(std::span(memory)),
                   .reserve = [&](std::size_t, std::size_t size) { reserved += size; }});
  read_range(index, *file_, 0, 600);
  EXPECT_GE(reserved, leaves_.size() * 16);
}

TEST_F(SmallRecords, ASegmentThatNobodyFinishesIsWaitedForOnlySoLong) {
  auto producer = known(leaves_);
  std::vector<std::uint64_t> memory(required_bytes(*producer, facts_of(database_)) / 8);
  const auto bytes = std::as_writable_bytes(std::span(memory));
  LeafIndex index(std::move(producer), facts_of(database_), database_.pages(),
                  {.bytes = bytes, .patience = std::chrono::milliseconds(30)});
  const std::uint32_t busy = 1;
  std::memcpy(bytes.data() + 64, &busy, sizeof busy);
  std::vector<FileExtent> extents;
  try {
    index.extents(0, 1, extents);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::communication);
  }
}

// Lies. Each must be noticed before a record is handed out that is not the one asked for.

void expect_mismatch(const std::function<void()>& read, std::string_view text) {
  try {
    read();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IndexMismatch& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
    EXPECT_THAT(error.what(), HasSubstr("damaged.mdb"));
  }
}

TEST_F(SmallRecords, SwappedNeighboursAreNoticedByOrder) {
  std::swap(leaves_[3], leaves_[4]);
  expect_mismatch([&] { read(known(leaves_), 0, 600); }, "first key");
}

TEST_F(SmallRecords, ASwappedLeafIsNoticedAloneByItsKeys) {
  const auto flags = database_.tree().header().flags;
  const LeafTable table = table_of(leaves_, flags);
  std::swap(leaves_[3], leaves_[4]);
  LeafTable lie = table_of(leaves_, flags);
  lie.set_keys(table.keys());
  const std::uint64_t sample = 3 * leaves_[0].records;
  expect_mismatch([&] { read(std::make_unique<TableLeaves>(lie), sample, 1); }, "keys");
}

TEST_F(SmallRecords, CountsThatAreWrongAreNoticed) {
  ++leaves_[2].records;
  --leaves_[3].records;
  const std::uint64_t sample = 2 * leaves_[0].records;
  expect_mismatch([&] { read(known(leaves_), sample, 1); }, "expects");
}

TEST_F(SmallRecords, PagesThatAreNoLeavesAreNoticed) {
  leaves_[0].page = bytes_.root();
  expect_mismatch([&] { read(known(leaves_), 0, 1); }, "not those of a leaf");
}

TEST_F(SmallRecords, PagesOutsideTheFileAreNoticed) {
  for (const PageNumber page :
       {PageNumber{0}, PageNumber{1}, bytes_.pages(), ~PageNumber{0}, PageNumber{1} << 48}) {
    leaves_[0].page = page;
    expect_mismatch([&] { read(known(leaves_), 0, 1); }, "outside");
  }
}

TEST_F(SmallRecords, TotalsThatAreWrongAreNoticedAtOnce) {
  leaves_.pop_back();
  expect_mismatch([&] { read(known(leaves_), 0, 1); }, "where the tree has");
}

TEST_F(RunsAndLeaves, RunsThatAreWrongAreNoticed) {
  const auto sound = leaves_;
  for (const auto& change : std::vector<std::function<void(LeafRun&)>>{
           [](LeafRun& run) { ++run.page; }, [](LeafRun& run) { --run.page; },
           [](LeafRun& run) { ++run.pages; },
           [](LeafRun& run) {
             run.page = 2;
             run.pages = 1;
           }}) {
    leaves_ = sound;
    change(leaves_[1].runs.at(0));
    const std::uint64_t sample = leaves_[0].records + leaves_[1].runs[0].slot;
    expect_mismatch([&] { read(known(leaves_), sample, 1); }, "record");
  }
}

TEST_F(RunsAndLeaves, RunsThatAreMissingOrTooManyAreNoticed) {
  const auto sound = leaves_;
  leaves_[1].runs.pop_back();
  expect_mismatch([&] { read(known(leaves_), leaves_[0].records, 1); }, "overflow pages");
  leaves_ = sound;
  leaves_[0].runs[0].slot = 5000;
  expect_mismatch([&] { read(known(leaves_), 0, 1); }, "overflow run");
}

TEST_F(RunsAndLeaves, DamageIsToldApartFromALyingIndex) {
  const auto leaf =
      std::ranges::find_if(leaves_, [](const auto& one) { return !one.runs.empty(); });
  const LeafRun run = leaf->runs[0];
  bytes_.set<std::uint16_t>(bytes_.at(run.page) + 10, 0x02);
  file_ = bytes_.open();
  try {
    read(known(leaves_), 0, 300);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IndexMismatch& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("no overflow run"));
  }
}

TEST_F(RunsAndLeaves, ANamedDatabaseAmongRecordsIsUnsupported) {
  // A value of 48 bytes that is marked as the header of a tree.
  FileSurgery bytes(LmdbBuilder().in_order(20).values(48));
  const auto node = bytes.node(bytes.first_leaf(), 4);
  bytes.set<std::uint16_t>(node + 4, kNodeTree);
  const auto file = bytes.open();
  Database database = Database::open(std::make_shared<const Snapshot>(file), {}, true);
  OwnIndex index(database, known(leaves_of(database)));
  EXPECT_EQ(read_range(*index, *file, 0, 4).size(), 4U);
  try {
    read_range(*index, *file, 4, 1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.where().sample, 4U);
  }
}

}  // namespace
}  // namespace forebay::lmdb
