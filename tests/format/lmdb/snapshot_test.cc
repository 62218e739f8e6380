// A file may have a writer: what is read is the snapshot, or the error "data set changed".
#include "format/lmdb/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "format/lmdb/reader_slot.hpp"
#include "format/record_source.hpp"
#include "tests/format/lmdb/every_database.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kRecords = 200;

/// Writes generation after generation through liblmdb: each transaction replaces every value, with
/// other sizes, and deletes one key in five, a different one each time.
class Generations {
 public:
  explicit Generations(const std::string& directory, unsigned flags = MDB_NOSYNC) {
    DatasetPath path;
    path.environment = directory;
    std::filesystem::create_directories(directory);
    environment_ = std::make_shared<Environment>(
        path, Environment::Options{.flags = flags, .map_size = 64 << 20});
  }

  static std::string key(std::uint64_t number) { return "key " + std::to_string(1000 + number); }
  static std::string value(std::uint64_t generation, std::uint64_t number) {
    return std::to_string(generation) + " " +
           test::test_value(generation, number, 10 + (generation * 37 + number * 11) % 4000);
  }
  static bool has(std::uint64_t generation, std::uint64_t number) {
    return (number + generation) % 5 != 0;
  }
  static std::vector<OracleRecord> expected(std::uint64_t generation) {
    std::vector<OracleRecord> records;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      if (has(generation, i)) records.push_back({key(i), value(generation, i)});
    }
    return records;
  }

  void write(std::uint64_t generation) {
    begin(generation);
    commit();
  }
  /// Leaves the transaction open.
  void begin(std::uint64_t generation) {
    transaction_ = std::make_unique<Transaction>(environment_, 0U);
    const MDB_dbi dbi = transaction_->open_database("", MDB_CREATE);
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      const std::string key_text = key(i);
      const std::string value_text = value(generation, i);
      MDB_val key = to_val(to_bytes(key_text));
      MDB_val value = to_val(to_bytes(value_text));
      const int code = has(generation, i) ? mdb_put(transaction_->get(), dbi, &key, &value, 0)
                                          : mdb_del(transaction_->get(), dbi, &key, nullptr);
      if (code != MDB_NOTFOUND) check_lmdb(code, "mdb_put", environment_->path());
    }
  }
  void commit() {
    check_lmdb(transaction_->commit(), "mdb_txn_commit", environment_->path());
    transaction_.reset();
  }

 private:
  std::shared_ptr<Environment> environment_;
  std::unique_ptr<Transaction> transaction_;
};

/// Without a slot, as on a network file system.
Database open_without_slot(const std::string& directory, Engine engine = Engine::mmap) {
  return Database::open(
      std::make_shared<const Snapshot>(open_file(directory + "/data.mdb", engine)), {}, false);
}

void expect_changed(const Database& database) {
  try {
    database.check_unchanged();
    ADD_FAILURE() << "no change was noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::changed);
    EXPECT_THAT(error.what(), testing::HasSubstr("data set changed while open"));
  }
}

class Writing : public testing::Test {
 protected:
  test::TemporaryFolder directory_;
};

TEST_F(Writing, WithoutASlotOneCommitIsHarmlessAndTwoAreReported) {
  Generations writer(directory_.path());
  writer.write(1);
  Database database = open_without_slot(directory_.path());
  database.check_unchanged();
  writer.write(2);
  database.check_unchanged();
  EXPECT_EQ(read_all(database), Generations::expected(1));
  writer.write(3);
  expect_changed(database);
}

TEST_F(Writing, PagesAreSparedUntilTheThirdTransactionAndNoLonger) {
  // With a writable map a transaction writes in place while it runs: the hardest case. So many
  // generations that pages are taken from the free list throughout.
  Generations writer(directory_.path(), MDB_NOSYNC | MDB_WRITEMAP);
  std::uint64_t generation = 1;
  for (; generation <= 20; ++generation) writer.write(generation);
  Database database = open_without_slot(directory_.path());
  const auto expected = Generations::expected(generation - 1);
  writer.write(generation++);  // T + 1
  writer.begin(generation++);  // T + 2 runs
  EXPECT_EQ(read_all(database), expected);
  database.check_unchanged();
  writer.commit();  // T + 2 is committed: from here on T + 3 may run
  expect_changed(database);
  EXPECT_EQ(read_all(database), expected);
  writer.begin(generation++);  // T + 3 runs, and takes our pages
  bool intact = true;
  try {
    intact = read_all(database) == expected;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::changed) << error.what();
    intact = false;
  }
  EXPECT_FALSE(intact) << "the rule could be weaker";
  expect_changed(database);
}

TEST_F(Writing, WithASlotAnyNumberOfCommitsIsHarmless) {
  Generations writer(directory_.path());
  writer.write(1);
  for (const Engine engine : {Engine::mmap, Engine::pread}) {
    writer.write(1);
    Database database = Database::open(directory_.path(), engine);
    ASSERT_TRUE(database.holds_slot());
    for (std::uint64_t generation = 2; generation < 30; ++generation) writer.write(generation);
    EXPECT_EQ(read_all(database), Generations::expected(1));
    database.check_unchanged();
  }
}

TEST_F(Writing, ASlotThatAnotherEnvironmentOfTheProcessFreedIsNoticed) {
  auto writer = std::make_unique<Generations>(directory_.path());
  writer->write(1);
  Database database = Database::open(directory_.path(), Engine::pread);
  {
    // liblmdb frees all places of the process when any environment over the file closes.
    const auto path = resolve_dataset_path(directory_.path());
    auto other = std::make_shared<const Environment>(
        path, Environment::Options{.flags = MDB_RDONLY | MDB_NOTLS});
    const ReaderSlot slot(other);
  }
  writer->write(2);
  database.check_unchanged();
  writer->write(3);
  expect_changed(database);
}

TEST_F(Writing, TheBaselineReadsItsSnapshot) {
  Generations writer(directory_.path());
  writer.write(1);
  const auto source = open_records(directory_.path(), SourceEngine::liblmdb);
  for (std::uint64_t generation = 2; generation < 20; ++generation) writer.write(generation);
  std::vector<OracleRecord> records;
  source->read(source->entries(), [&](const Record& record) {
    records.push_back({to_text(record.key), to_text(record.value)});
  });
  EXPECT_EQ(records, Generations::expected(1));
  source->check_unchanged();
}

TEST_F(Writing, ACutInsideAPageIsNoticedThoughNothingFaults) {
  Generations(directory_.path()).write(1);
  Database database = open_without_slot(directory_.path(), Engine::mmap);
  EXPECT_NO_THROW(database.check_unchanged());
  const std::string file = directory_.file("data.mdb");
  const std::uint64_t used = (database.last_page() + 1) * database.page_size();
  std::filesystem::resize_file(file, used - 100);
  expect_changed(database);
}

TEST_F(Writing, AReplacedFileWithOlderTransactionsIsNoticed) {
  Generations writer(directory_.path());
  for (std::uint64_t generation = 1; generation < 5; ++generation) writer.write(generation);
  Database database = open_without_slot(directory_.path(), Engine::pread);
  test::LmdbBuilder().in_order(300).build(directory_.file("other"));
  std::filesystem::copy_file(directory_.file("other/data.mdb"), directory_.file("data.mdb"),
                             std::filesystem::copy_options::overwrite_existing);
  expect_changed(database);
}

/// Writes generations in another process until it is told to stop.
class WriterProcess {
 public:
  WriterProcess(const std::string& directory, unsigned flags) {
    child_ = ::fork();
    if (child_ != 0) return;
    try {
      Generations writer(directory, flags);
      for (std::uint64_t generation = 1;; ++generation) writer.write(generation);
    } catch (...) {
      ::_exit(1);
    }
  }
  ~WriterProcess() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;

 private:
  pid_t child_ = 0;
};

struct Outcomes {
  int right = 0;
  int changed = 0;
};

/// Reads the whole data set; what passes check_unchanged has to be one generation.
void read_once(RecordSource& source, Outcomes& outcomes) {
  std::vector<OracleRecord> records;
  try {
    source.read(source.entries(), [&](const Record& record) {
      records.push_back({to_text(record.key), to_text(record.value)});
    });
    source.check_unchanged();
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::changed) << error.what();
    ++outcomes.changed;
    return;
  }
  ASSERT_FALSE(records.empty());
  const std::uint64_t generation = std::stoull(records.front().value);
  ASSERT_EQ(records, Generations::expected(generation));
  ++outcomes.right;
}

class WritingProcess : public testing::TestWithParam<bool> {};

TEST_P(WritingProcess, GivesOneGenerationOrTheErrorThatItChanged) {
  const bool locked = GetParam();
  const test::TemporaryFolder directory;
  { Generations(directory.path()).write(1); }
  Outcomes outcomes;
  {
    const WriterProcess writer(directory.path(), MDB_NOSYNC | (locked ? 0U : MDB_NOLOCK));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    if (!locked) std::filesystem::remove(directory.file("lock.mdb"));
    while (std::chrono::steady_clock::now() < end) {
      for (const SourceEngine engine : {SourceEngine::mmap, SourceEngine::pread}) {
        try {
          read_once(*open_records(directory.path(), engine), outcomes);
        } catch (const Error& error) {
          ASSERT_EQ(error.kind(), ErrorKind::changed) << error.what();
          ++outcomes.changed;
        }
      }
    }
  }
  EXPECT_GT(outcomes.right + outcomes.changed, 10);
  // A slot keeps the snapshot alive, so nothing but right reads is expected with one.
  if (locked) {
    EXPECT_GT(outcomes.right, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Locking, WritingProcess, testing::Bool());

}  // namespace
}  // namespace forebay::lmdb
