// What can be opened, and how everything else is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "format/lmdb/liblmdb.hpp"
#include "format/lmdb/writer.hpp"
#include "format/record_source.hpp"
#include "tests/format/lmdb/every_database.hpp"
#include "tests/format/lmdb/file_surgery.hpp"

namespace forebay::lmdb {
namespace {

using test::LmdbBuilder;
using testing::HasSubstr;

constexpr SourceEngine kSourceEngines[] = {SourceEngine::liblmdb, SourceEngine::mmap,
                                           SourceEngine::pread};

class Open : public testing::Test {
 protected:
  /// Every engine refuses `path` with the same kind and one line.
  void expect_refused(const std::string& path, ErrorKind kind, std::string_view text) {
    for (const SourceEngine engine : kSourceEngines) {
      try {
        open_records(path, engine);
        ADD_FAILURE() << path << " was opened";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
        EXPECT_FALSE(error.remedy().empty()) << error.what();
      }
    }
  }
  void write_data_file(std::string_view text) {
    std::ofstream(directory_.file("data.mdb"), std::ios::binary) << text;
  }
  void write_database(FileSurgery& file) { file.write_to(directory_.file("data.mdb")); }

  test::TemporaryFolder directory_;
};

TEST_F(Open, RefusesAMissingPath) {
  expect_refused(directory_.file("absent"), ErrorKind::not_found, "no such file or directory");
  expect_refused(directory_.file("absent#name"), ErrorKind::not_found, "no such file or directory");
}

TEST_F(Open, RefusesAnEmptyDirectory) {
  expect_refused(directory_.path(), ErrorKind::not_found, "the directory holds no data.mdb");
}

TEST_F(Open, RefusesAnEmptyFile) {
  write_data_file("");
  expect_refused(directory_.path(), ErrorKind::corrupt, "the file is empty");
}

TEST_F(Open, RefusesATextFile) {
  write_data_file("these are not the bytes of a database\n");
  expect_refused(directory_.path(), ErrorKind::corrupt, "too few for LMDB");
  write_data_file(std::string(20'000, 'x'));
  expect_refused(directory_.path(), ErrorKind::corrupt, "does not begin with an LMDB meta page");
}

TEST_F(Open, RefusesOtherVersions) {
  FileSurgery file(LmdbBuilder().in_order(10));
  file.set<std::uint32_t>(20, 2);
  write_database(file);
  expect_refused(directory_.path(), ErrorKind::unsupported, "LMDB data version 2");
  file.set<std::uint32_t>(20, 999);
  write_database(file);
  expect_refused(directory_.path(), ErrorKind::unsupported, "LMDB data version 999");
}

TEST_F(Open, RefusesTheLongerPageHeaderOfLmdb1) {
  FileSurgery file(LmdbBuilder().in_order(10));
  file.set<std::uint64_t>(16, 0);
  file.set<std::uint32_t>(24, 0xBEEFC0DE);
  file.set<std::uint32_t>(28, 2);
  write_database(file);
  expect_refused(directory_.path(), ErrorKind::unsupported, "LMDB 1.0");
}

TEST_F(Open, RefusesOtherPlatforms) {
  FileSurgery file(LmdbBuilder().in_order(10));
  file.set<std::uint32_t>(16, 0xDEC0EFBE);
  write_database(file);
  expect_refused(directory_.path(), ErrorKind::unsupported, "big-endian or 32-bit");
}

TEST_F(Open, RefusesSeveralValuesAKey) {
  for (const std::string name : {"", "duplicates"}) {
    DatasetPath path;
    path.environment = directory_.file("at" + name);
    std::filesystem::create_directories(path.environment);
    Transaction transaction(std::make_shared<const Environment>(path, Environment::Options{}), 0U);
    transaction.open_database(name, MDB_DUPSORT | MDB_CREATE);
    ASSERT_EQ(transaction.commit(), MDB_SUCCESS);
    const std::string suffix = name.empty() ? "" : "#" + name;
    expect_refused(path.environment + suffix, ErrorKind::unsupported, "MDB_DUPSORT");
  }
}

TEST_F(Open, ListsNamedDatabasesWhenNoneIsNamed) {
  LmdbBuilder().in_order(10).named("train").beside({"test", "meta"}).build(directory_.path());
  expect_refused(directory_.path(), ErrorKind::usage, "meta, test, train");
  expect_refused(directory_.path() + "#trian", ErrorKind::not_found, "meta, test, train");
  expect_refused(directory_.path() + "#", ErrorKind::usage, "path#name");
}

TEST_F(Open, NamesOfDatabasesAreShownAsTheyAreOpened) {
  const std::vector<std::string> names = {"x y", "\xc3\xa9", "\x01\xff"};
  LmdbBuilder().in_order(10).named(names[0]).beside({names[1], names[2]}).build(directory_.path());
  const std::vector<std::string> shown = {"x y", "\xc3\xa9", "0x01ff", "0x782079", "0xc3a9"};
  expect_refused(directory_.path(), ErrorKind::usage, "0x01ff, x y, \xc3\xa9");
  expect_refused(directory_.path() + "#no", ErrorKind::not_found, "0x01ff, x y, \xc3\xa9");
  for (const SourceEngine engine : kSourceEngines) {
    for (const std::string& name : shown) {
      EXPECT_NO_THROW(open_records(directory_.path() + "#" + name, engine)) << name;
    }
    EXPECT_EQ(open_records(directory_.path() + "#0x782079", engine)->entries(), 10U);
  }
  expect_refused(directory_.path() + "#0x00", ErrorKind::not_found, "no database is named '0x00'");
}

TEST_F(Open, RefusesANameWhereThereAreNone) {
  LmdbBuilder().in_order(10).build(directory_.path());
  expect_refused(directory_.path() + "#train", ErrorKind::not_found, "no database is named");
}

TEST_F(Open, RefusesToDeliverANamedDatabaseAsASample) {
  LmdbBuilder().in_order(10).build(directory_.path());
  { Writer(directory_.path(), {.name = "zoo"}).commit(); }
  const auto source = open_records(directory_.path(), SourceEngine::pread);
  try {
    source->read(11, [](const Record&) {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("zoo"));
  }
}

TEST_F(Open, TakesAPathWithHashesAsItIs) {
  const std::string hashed = directory_.file("a#b");
  const auto path = LmdbBuilder().in_order(7).named("train").beside({"b"}).build(hashed);
  EXPECT_EQ(Database::open(path, Engine::pread).entries(), 7U);
  EXPECT_EQ(resolve_dataset_path(path).name, "train");
  // The longest existing path wins: "a" exists as well.
  LmdbBuilder().in_order(3).build(directory_.file("a"));
  EXPECT_EQ(Database::open(path, Engine::pread).entries(), 7U);
}

TEST_F(Open, TakesTheDataFileOfADirectory) {
  LmdbBuilder().in_order(7).build(directory_.path());
  const DatasetPath path = resolve_dataset_path(directory_.file("data.mdb"));
  EXPECT_EQ(path.lock_file, directory_.file("lock.mdb"));
  for (const SourceEngine engine : kSourceEngines) {
    EXPECT_EQ(open_records(directory_.file("data.mdb"), engine)->entries(), 7U);
    EXPECT_EQ(open_records(directory_.path() + "//", engine)->entries(), 7U);
  }
}

TEST_F(Open, CreatesNoFileAndNeedsNoLockFile) {
  LmdbBuilder().in_order(7).build(directory_.path());
  std::filesystem::remove(directory_.file("lock.mdb"));
  for (const SourceEngine engine : kSourceEngines) {
    EXPECT_EQ(open_records(directory_.path(), engine)->entries(), 7U);
  }
  EXPECT_FALSE(std::filesystem::exists(directory_.file("lock.mdb")));
}

TEST_F(Open, WorksInAReadOnlyDirectory) {
  LmdbBuilder().in_order(7).build(directory_.path());
  std::filesystem::permissions(directory_.file("lock.mdb"), std::filesystem::perms::owner_read);
  std::filesystem::permissions(
      directory_.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  for (const SourceEngine engine : kSourceEngines) {
    EXPECT_EQ(open_records(directory_.path(), engine)->entries(), 7U);
  }
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::owner_all);
}

TEST_F(Open, NamesTheFileThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  LmdbBuilder().in_order(7).build(directory_.path());
  std::filesystem::permissions(directory_.file("data.mdb"), std::filesystem::perms::none);
  expect_refused(directory_.path(), ErrorKind::io, "data.mdb");
}

TEST_F(Open, TakesMoreReadersThanTheTableHasPlaces) {
  LmdbBuilder().in_order(50).build(directory_.path());
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (int i = 0; i < 200; ++i) {
    sources.push_back(open_records(directory_.path(), SourceEngine::pread));
    sources.back()->read(50, [](const Record&) {});
    sources.back()->check_unchanged();
  }
}

TEST_F(Open, TakesMoreBaselineReadersThanTheTableHasPlaces) {
  LmdbBuilder().in_order(50).build(directory_.path());
  std::vector<std::unique_ptr<RecordSource>> sources;
  for (int i = 0; i < 140; ++i) {
    sources.push_back(open_records(directory_.path(), SourceEngine::liblmdb));
    sources.back()->read(50, [](const Record&) {});
  }
}

TEST_F(Open, CountsWhatItReads) {
  const auto path = LmdbBuilder().in_order(1000).values(3100).build(directory_.path());
  const auto mapped = open_records(path, SourceEngine::mmap);
  mapped->read(1000, [](const Record&) {});
  EXPECT_GE(mapped->counters().pages_visited, 1000U);
  EXPECT_EQ(mapped->counters().bytes_requested, mapped->counters().pages_visited * 4096);
  EXPECT_LT(mapped->counters().bytes_requested, 1000U * 3100U * 14 / 10);
  const auto read = open_records(path, SourceEngine::pread);
  read->read(1000, [](const Record&) {});
  EXPECT_LT(read->counters().bytes_requested, 1000U * 3100U * 14 / 10);
  EXPECT_LT(read->counters().requests, 60U);
  const auto baseline = open_records(path, SourceEngine::liblmdb);
  baseline->seek(900);
  EXPECT_EQ(baseline->counters().records_skipped, 900U);
}

}  // namespace
}  // namespace forebay::lmdb
