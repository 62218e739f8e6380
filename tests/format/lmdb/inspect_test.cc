// inspect and verify agree with liblmdb's own statistics, and verify finds what is broken.
#include "format/lmdb/inspect.hpp"

#include <gmock/gmock.h>
#include <lmdb.h>

#include <fstream>
#include <map>
#include <numeric>

#include "format/lmdb/reader_slot.hpp"
#include "format/lmdb/verify.hpp"
#include "tests/format/lmdb/every_database.hpp"
#include "tests/format/lmdb/file_surgery.hpp"

namespace forebay::lmdb {
namespace {

class EveryDatabaseLookedInto : public EveryDatabase {};

MDB_stat statistics_of(const DatasetPath& path) {
  const auto environment = shared_reader_environment(path);
  const MDB_dbi dbi = open_for_readers(environment, path.name);
  const ReaderSlot slot(environment);
  MDB_stat stat{};
  check_lmdb(mdb_stat(slot.txn(), dbi, &stat), "mdb_stat", path.text);
  return stat;
}

TEST_P(EveryDatabaseLookedInto, InspectAgreesWithMdbStat) {
  const MDB_stat stat = statistics_of(resolved_);
  const DatabaseReport report = inspect(path_, Engine::pread);
  EXPECT_EQ(report.entries, stat.ms_entries);
  EXPECT_EQ(report.depth, stat.ms_depth);
  EXPECT_EQ(report.page_size, stat.ms_psize);
  EXPECT_EQ(report.tree.branch_pages, stat.ms_branch_pages);
  EXPECT_EQ(report.tree.leaf_pages, stat.ms_leaf_pages);
  EXPECT_EQ(report.tree.overflow_pages, stat.ms_overflow_pages);
}

TEST_P(EveryDatabaseLookedInto, InspectAccountsForEveryPageAndByte) {
  const DatabaseReport report = inspect(path_, Engine::mmap);
  EXPECT_EQ(report.pages.unaccounted, 0U);
  std::uint64_t bytes = 0;
  for (const OracleRecord& record : expected_) bytes += record.value.size();
  EXPECT_EQ(report.values.total, bytes);
  EXPECT_EQ(report.values.count, expected_.size());
  EXPECT_EQ(std::accumulate(report.values.histogram.begin(), report.values.histogram.end(),
                            std::uint64_t{0}),
            expected_.size());
  EXPECT_LE(report.used_bytes, report.file_bytes);
}

TEST_P(EveryDatabaseLookedInto, VerifyFindsEveryRecordAndNoFault) {
  for (const Engine engine : {Engine::mmap, Engine::pread}) {
    Database database = open(engine);
    std::size_t seen = 0;
    const PagesReport report = verify(database, {}, [&](const Record& record) {
      ASSERT_EQ(record.sample, seen);
      ASSERT_EQ(to_text(record.key), expected_[seen].key);
      ASSERT_EQ(to_text(record.value), expected_[seen].value);
      ++seen;
    });
    EXPECT_EQ(seen, expected_.size());
    EXPECT_EQ(report.records, expected_.size());
    EXPECT_EQ(report.unreferenced_pages, 0U);
    ASSERT_TRUE(report.sound()) << report.faults.front().database << " page "
                                << report.faults.front().page << ": " << report.faults.front().text;
  }
}

INSTANTIATE_TEST_SUITE_P(Standard, EveryDatabaseLookedInto, every_standard_database(),
                         name_of_case);

std::string pattern_of(const test::LmdbBuilder& builder) {
  const test::TemporaryFolder directory;
  return inspect(builder.build(directory.path()), Engine::pread).key_pattern;
}

TEST(Inspect, RecognizesKeyPatterns) {
  using test::LmdbBuilder;
  EXPECT_EQ(pattern_of(LmdbBuilder().in_order(10)), "decimal, 8 digits, zero-padded");
  EXPECT_EQ(pattern_of(LmdbBuilder().in_order(10).integer_keys(8)), "integer, 8 bytes");
  EXPECT_THAT(pattern_of(LmdbBuilder().in_order(10).file_name_keys()), testing::HasSubstr("Caffe"));
  EXPECT_EQ(pattern_of(LmdbBuilder().in_order(0)), "none");
}

TEST(Inspect, ListsTheNamedDatabasesOfAContainer) {
  const test::TemporaryFolder directory;
  test::LmdbBuilder().in_order(70).named("train").beside({"test"}).build(directory.path());
  const DatabaseReport report = inspect(directory.path(), Engine::pread);
  ASSERT_EQ(report.named.size(), 2U);
  EXPECT_EQ(report.named[0].name, "test");
  EXPECT_EQ(report.named[0].header.entries, 50U);
  EXPECT_EQ(report.named[1].name, "train");
  EXPECT_EQ(report.named[1].header.entries, 70U);
  EXPECT_EQ(report.entries, 0U);
}

TEST(Inspect, ReadAmplificationIsPagesOverValues) {
  const test::TemporaryFolder directory;
  const auto path = test::LmdbBuilder().in_order(1000).values(3100).build(directory.path());
  const DatabaseReport report = inspect(path, Engine::pread);
  EXPECT_GT(report.read_amplification, 4096.0 / 3100.0);
  EXPECT_LT(report.read_amplification, 1.4);
  EXPECT_EQ(report.values.min, 3100U);
  EXPECT_EQ(report.values.max, 3100U);
  EXPECT_EQ(report.values.histogram[12], 1000U);  // 2048 to 4095
}

/// A database of two levels in memory, to be damaged.
class VerifyDamaged : public testing::Test {
 protected:
  VerifyDamaged() : file_(test::LmdbBuilder().in_order(300).values(200, 3000)) {}

  PagesReport run(const VerifyOptions& options = {}) {
    const auto snapshot = std::make_shared<const Snapshot>(file_.open());
    Database database = Database::open(snapshot, {}, true);  // looks at no record yet
    records_.clear();
    return verify(database, options,
                  [&](const Record& record) { records_.push_back(to_text(record.key)); });
  }

  FileSurgery file_;
  std::vector<std::string> records_;
};

TEST_F(VerifyDamaged, ReportsAZeroedLeafAndGoesOnBesideIt) {
  const PageNumber leaf = file_.child(file_.root(), 2);
  const unsigned lost = file_.count(leaf);
  file_.zero_page(leaf);
  const PagesReport report = run();
  ASSERT_EQ(report.fault_count, 1U);
  EXPECT_EQ(report.faults[0].page, leaf);
  EXPECT_EQ(report.faults[0].offset, leaf * 4096);
  EXPECT_EQ(records_.size(), 300U - lost);
}

TEST_F(VerifyDamaged, ReportsAPageWithTwoOwners) {
  file_.set_child(file_.root(), 2, file_.child(file_.root(), 1));
  const PagesReport report = run();
  EXPECT_FALSE(report.sound());
  EXPECT_THAT(report.faults[0].text, testing::HasSubstr("used twice"));
  EXPECT_LT(records_.size(), 300U);
}

TEST_F(VerifyDamaged, ReportsALoopInABranch) {
  file_.set_child(file_.root(), 1, file_.root());
  const PagesReport report = run();
  EXPECT_THAT(report.faults[0].text, testing::HasSubstr("used twice"));
}

TEST_F(VerifyDamaged, ReportsKeysOutOfOrderWithTheKey) {
  unsigned slot = 1;
  while (file_.count(file_.child(file_.root(), slot)) < 2) ++slot;
  file_.swap_slots(file_.child(file_.root(), slot), 0, 1);
  const PagesReport report = run();
  ASSERT_FALSE(report.sound());
  EXPECT_THAT(report.faults[0].text, testing::HasSubstr("not above"));
  EXPECT_FALSE(report.faults[0].key.empty());
  EXPECT_EQ(records_.size(), 300U);
}

TEST_F(VerifyDamaged, ReportsCountsThatDoNotAgree) {
  file_.set_main_entries(299);
  const PagesReport report = run();
  ASSERT_EQ(report.fault_count, 1U);
  EXPECT_THAT(report.faults[0].text, testing::HasSubstr("300 entries but its header counts 299"));
}

TEST_F(VerifyDamaged, ReportsWhatTheVisitorThrowsWithTheKey) {
  Database database = Database::open(file_.open());
  const PagesReport report = verify(database, {}, [](const Record& record) {
    if (record.sample == 17) throw Error(ErrorKind::corrupt, "the value does not decode");
  });
  ASSERT_EQ(report.fault_count, 1U);
  EXPECT_EQ(report.faults[0].key, "00000017");
  EXPECT_EQ(report.records, 300U);
}

TEST_F(VerifyDamaged, KeepsAsManyFaultsAsAllowedAndCountsAll) {
  for (unsigned slot = 0; slot < 5; ++slot) file_.zero_page(file_.child(file_.root(), slot));
  const PagesReport report = run({.max_faults = 2});
  EXPECT_EQ(report.fault_count, 5U);
  EXPECT_EQ(report.faults.size(), 2U);
}

TEST_F(VerifyDamaged, ReportsADamagedMetaPage) {
  file_.zero_page(file_.older_meta_page());
  const PagesReport report = run();
  ASSERT_EQ(report.fault_count, 1U);
  EXPECT_EQ(report.faults[0].database, "meta");
  EXPECT_EQ(records_.size(), 300U);
}

TEST(Verify, ReportsFreePagesThatAreInTheTree) {
  FileSurgery file(test::LmdbBuilder().in_order(300).values(2500).commit_every(50).delete_every(3));
  file.set_first_free_page(file.child(file.root(), 0));
  Database database = Database::open(file.open());
  const PagesReport report = verify(database);
  ASSERT_FALSE(report.sound());
  EXPECT_EQ(report.faults[0].database, "free list");
}

}  // namespace
}  // namespace forebay::lmdb
