// Bytes are not trusted: damage ends in an Error that names the place, never in a crash, a hang or
// another record's bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "format/lmdb/verify.hpp"
#include "format/record_source.hpp"
#include "tests/format/lmdb/every_database.hpp"
#include "tests/format/lmdb/file_surgery.hpp"
#include "tests/support/unmapped_file.hpp"

namespace forebay::lmdb {
namespace {

using test::LmdbBuilder;
using testing::HasSubstr;

/// What reading everything ends with.
Error error_of_reading(const std::shared_ptr<const File>& file) {
  try {
    Database database = Database::open(file);
    read_all(database);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::usage, "nothing was thrown"};
}

void expect_corrupt(const FileSurgery& file, std::string_view text) {
  const Error error = error_of_reading(file.open());
  EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
  EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
  EXPECT_THAT(error.what(), HasSubstr("damaged.mdb"));
  EXPECT_THAT(error.what(), HasSubstr("offset"));
  EXPECT_THAT(error.remedy(), testing::Not(testing::IsEmpty()));
}

class Damaged : public testing::Test {
 protected:
  FileSurgery file_{LmdbBuilder().in_order(300).values(200, 3000)};
};

TEST_F(Damaged, HalfAFile) {
  file_.bytes().resize(file_.bytes().size() / 2);
  expect_corrupt(file_, "do not fit");
}

TEST_F(Damaged, LastPageMissing) {
  file_.bytes().resize(file_.bytes().size() - 4096);
  EXPECT_EQ(error_of_reading(file_.open()).kind(), ErrorKind::corrupt);
}

TEST_F(Damaged, ZeroedLeaf) {
  const auto leaf = file_.child(file_.root(), 1);
  file_.zero_page(leaf);
  expect_corrupt(file_, "page " + std::to_string(leaf) + ": the page calls itself page 0");
}

TEST_F(Damaged, ZeroedRoot) {
  file_.zero_page(file_.root());
  expect_corrupt(file_, "calls itself page 0");
}

TEST_F(Damaged, BranchThatLeadsToItself) {
  file_.set_child(file_.root(), 1, file_.root());
  expect_corrupt(file_, "a branch page at level 1 of a tree of depth 2");
}

TEST_F(Damaged, BranchThatLeadsToALeafTwice) {
  file_.set_child(file_.root(), 2, file_.child(file_.root(), 1));
  Database database = Database::open(file_.open());
  // A walk alone notices by the count, verify by the page.
  const PagesReport report = verify(database);
  EXPECT_FALSE(report.sound());
}

TEST_F(Damaged, ChildPastTheLastPage) {
  file_.set_child(file_.root(), 1, 9000);
  expect_corrupt(file_, "page 9000");
}

TEST_F(Damaged, ChildThatIsAMetaPage) {
  file_.set_child(file_.root(), 1, 1);
  expect_corrupt(file_, "leave the pages 2 to");
}

TEST_F(Damaged, NodeOffsetOutsideThePage) {
  file_.set<std::uint16_t>(file_.at(file_.first_leaf()) + 16, 4094);
  expect_corrupt(file_, "outside the page");
  file_.set<std::uint16_t>(file_.at(file_.first_leaf()) + 16, 60000);
  expect_corrupt(file_, "outside the page");
  file_.set<std::uint16_t>(file_.at(file_.first_leaf()) + 16, 2);
  expect_corrupt(file_, "outside the page");
}

TEST_F(Damaged, NodeOffsetOfAnotherRecord) {
  const auto other = file_.get<std::uint16_t>(file_.at(file_.first_leaf()) + 18);
  file_.set(file_.at(file_.first_leaf()) + 16, other);
  expect_corrupt(file_, "overlap");
}

TEST_F(Damaged, KeyLongerThanThePage) {
  file_.set<std::uint16_t>(file_.node(file_.first_leaf(), 0) + 6, 5000);
  expect_corrupt(file_, "leaves the page");
}

TEST_F(Damaged, ValueLongerThanThePage) {
  FileSurgery file(LmdbBuilder().in_order(20).values(50));
  file.set<std::uint16_t>(file.node(file.first_leaf(), 3), 60000);
  expect_corrupt(file, "leaves the page");
}

TEST_F(Damaged, FreeSpaceThatIsImpossible) {
  file_.set<std::uint16_t>(file_.at(file_.first_leaf()) + 12, 4098);
  expect_corrupt(file_, "free space");
  file_.set<std::uint16_t>(file_.at(file_.first_leaf()) + 12, 17);
  expect_corrupt(file_, "free space");
}

TEST_F(Damaged, OverflowRunPastTheEnd) {
  FileSurgery file(LmdbBuilder().in_order(4).values(9000));
  file.set<std::uint64_t>(file.data(file.root(), 1), file.pages() - 1);
  expect_corrupt(file, "leave the pages");
}

TEST_F(Damaged, OverflowRunShorterThanItsValue) {
  FileSurgery file(LmdbBuilder().in_order(4).values(9000));
  const auto run = file.get<std::uint64_t>(file.data(file.root(), 1));
  file.set<std::uint32_t>(file.at(run) + 12, 1);
  expect_corrupt(file, "cannot hold 9000 bytes");
}

TEST_F(Damaged, OverflowPageThatIsALeaf) {
  FileSurgery file(LmdbBuilder().in_order(4).values(3000));
  file.set<std::uint64_t>(file.data(file.root(), 1), file.root());
  expect_corrupt(file, "not those of an overflow page");
}

TEST_F(Damaged, EntriesThatTheWalkContradicts) {
  file_.set_main_entries(299);
  expect_corrupt(file_, "more records than the 299");
  file_.set_main_entries(301);
  expect_corrupt(file_, "its header counts 301");
}

TEST_F(Damaged, SourcesNoticeACountThatIsTooSmall) {
  const test::TemporaryFolder directory;
  file_.set_main_entries(299);
  file_.write_to(directory.file("data.mdb"));
  const auto source = open_records(directory.path(), SourceEngine::pread);
  EXPECT_THROW(source->read(299, [](const Record&) {}), Error);
}

TEST_F(Damaged, HeadersOfTreesThatCannotBe) {
  FileSurgery deep = file_;
  deep.set<std::uint16_t>(deep.main_tree(6), 33);
  expect_corrupt(deep, "depth of 33");
  FileSurgery many = file_;
  many.set_main_entries(std::uint64_t{1} << 60);
  expect_corrupt(many, "entries cannot lie on");
  FileSurgery wide = file_;
  wide.set<std::uint64_t>(wide.main_tree(16), ~std::uint64_t{0});
  expect_corrupt(wide, "do not fit");
  FileSurgery rootless = file_;
  rootless.set<std::uint64_t>(rootless.main_tree(40), 100'000);
  expect_corrupt(rootless, "root page 100000");
}

TEST_F(Damaged, NewerMetaPageFallsBackToTheOlder) {
  FileSurgery file(LmdbBuilder().in_order(10).commit_every(5));
  file.zero_page(file.newest_meta_page());
  Database database = Database::open(file.open());
  EXPECT_LT(database.entries(), 10U);
  EXPECT_EQ(read_all(database).size(), database.entries());
  EXPECT_FALSE(database.snapshot().damaged_meta().empty());
}

TEST_F(Damaged, FirstMetaPageOfLargerPagesIsNotNeeded) {
  FileSurgery file(LmdbBuilder().in_order(100).page_size(16384));
  ASSERT_EQ(file.newest_meta_page(), 1U);
  file.zero_page(0);
  Database database = Database::open(file.open());
  EXPECT_EQ(database.page_size(), 16384U);
  EXPECT_EQ(read_all(database).size(), 100U);
}

TEST_F(Damaged, BothMetaPages) {
  file_.set<std::uint16_t>(10, 0);
  file_.set<std::uint16_t>(4096 + 10, 0);
  expect_corrupt(file_, "both meta pages are damaged");
}

TEST_F(Damaged, WrongMagic) {
  file_.set<std::uint32_t>(16, 1);
  file_.set<std::uint32_t>(4096 + 16, 1);
  expect_corrupt(file_, "does not begin with an LMDB meta page");
}

TEST_F(Damaged, EachPageZeroedInTurnIsNoticedOrUnused) {
  FileSurgery whole(
      LmdbBuilder().random_order(150).values(0, 3000).commit_every(20).delete_every(5));
  Database sound = Database::open(whole.open());
  const auto expected = read_all(sound);
  for (std::uint64_t page = 0; page < whole.pages(); ++page) {
    FileSurgery file = whole;
    file.zero_page(page);
    try {
      Database database = Database::open(file.open());
      const auto records = read_all(database);
      // A value's later pages carry no check: there zeros are read. Keys and sizes are right.
      ASSERT_EQ(records.size(), database.entries());
      for (std::size_t i = 0; page > 1 && i < records.size(); ++i) {
        ASSERT_EQ(records[i].key, expected[i].key);
        ASSERT_EQ(records[i].value.size(), expected[i].value.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
    }
  }
}

TEST(Flipped, BytesEndInAnErrorOrInAWholeWalk) {
  const FileSurgery whole(
      LmdbBuilder().random_order(120).values(0, 2500).commit_every(20).delete_every(5));
  std::mt19937_64 random(3);
  int errors = 0;
  for (int round = 0; round < 1500; ++round) {
    FileSurgery file = whole;
    for (std::uint64_t flips = 1 + random() % 8; flips > 0; --flips) {
      // Mostly into headers and offsets, where it hurts.
      const std::uint64_t page = random() % file.pages();
      const std::uint64_t at = random() % 4 == 0 ? random() % 4096 : random() % 160;
      file.set(file.at(page) + at, static_cast<std::uint8_t>(random()));
    }
    std::shared_ptr<const File> bytes = file.open();
    if (round % 2 == 0) bytes = std::make_shared<const test::UnmappedFile>(bytes);
    try {
      Database database = Database::open(bytes);
      ASSERT_EQ(read_all(database).size(), database.entries());
      verify(database, {.max_faults = 3});
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

TEST(CutWhileOpen, IsAnIoErrorWithEachEngine) {
  for (const SourceEngine engine : {SourceEngine::mmap, SourceEngine::pread}) {
    const test::TemporaryFolder directory;
    const auto path = LmdbBuilder().in_order(2000).values(3000).build(directory.path());
    const auto source = open_records(path, engine);
    source->read(10, [](const Record&) {});
    std::filesystem::resize_file(directory.file("data.mdb"), 100 * 4096);
    try {
      source->read(1900, [](const Record& record) {
        volatile auto last = record.value.back();
        (void)last;
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::io, ErrorKind::corrupt)) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("data.mdb"));
    }
  }
}

}  // namespace
}  // namespace forebay::lmdb
