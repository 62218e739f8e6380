// Our reader equals liblmdb's own cursor walk, on every kind of database.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "format/record_source.hpp"
#include "tests/format/lmdb/every_database.hpp"

namespace forebay::lmdb {
namespace {

using test::NamedRecipe;

class EveryDatabaseRead : public EveryDatabase {};

constexpr Engine kEngines[] = {Engine::mmap, Engine::pread};
constexpr SourceEngine kSourceEngines[] = {SourceEngine::liblmdb, SourceEngine::mmap,
                                           SourceEngine::pread};

TEST_P(EveryDatabaseRead, WalkForwardEqualsLiblmdb) {
  for (const Engine engine : kEngines) {
    Database database = open(engine);
    ASSERT_EQ(database.entries(), expected_.size());
    Cursor cursor = database.tree().first();
    std::size_t i = 0;
    for (bool more = cursor.valid(); more; more = database.tree().next(cursor), ++i) {
      ASSERT_LT(i, expected_.size());
      ASSERT_EQ(cursor.sample, i);
      ASSERT_EQ(to_record(database.tree().entry(cursor)), expected_[i]) << "record " << i;
    }
    EXPECT_EQ(i, expected_.size());
  }
}

TEST_P(EveryDatabaseRead, WalkBackwardEqualsLiblmdb) {
  Database database = open(Engine::pread);
  Cursor cursor = database.tree().last();
  std::size_t i = expected_.size();
  for (bool more = cursor.valid(); more; more = database.tree().previous(cursor)) {
    ASSERT_GT(i, 0U);
    --i;
    ASSERT_EQ(cursor.sample, i);
    ASSERT_EQ(to_record(database.tree().entry(cursor)), expected_[i]) << "record " << i;
  }
  EXPECT_EQ(i, 0U);
}

TEST_P(EveryDatabaseRead, SeekFindsEveryKeyAndItsSuccessor) {
  Database database = open(Engine::mmap);
  Tree& tree = database.tree();
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    Cursor cursor = tree.seek(to_bytes(expected_[i].key));
    ASSERT_TRUE(cursor.valid());
    ASSERT_EQ(to_text(tree.entry(cursor).key), expected_[i].key);
    ASSERT_EQ(tree.next(cursor), i + 1 < expected_.size());
    if (cursor.valid()) {
      ASSERT_EQ(to_text(tree.entry(cursor).key), expected_[i + 1].key);
    }
  }
}

TEST_P(EveryDatabaseRead, SeekOfAnAbsentKeyIsALowerBound) {
  Database database = open(Engine::pread);
  Tree& tree = database.tree();
  const std::uint16_t flags = tree.header().flags;
  std::mt19937_64 random(7);
  for (int i = 0; i < 300 && !expected_.empty(); ++i) {
    std::string key = expected_[random() % expected_.size()].key;
    key[random() % key.size()] = static_cast<char>(random());
    const auto after = std::find_if(expected_.begin(), expected_.end(), [&](const auto& record) {
      return compare_keys(to_bytes(record.key), to_bytes(key), flags) >= 0;
    });
    const Cursor cursor = tree.seek(to_bytes(key));
    ASSERT_EQ(cursor.valid(), after != expected_.end());
    if (cursor.valid()) {
      ASSERT_EQ(to_text(tree.entry(cursor).key), after->key);
    }
  }
}

TEST_P(EveryDatabaseRead, SeekRecordFromAnywhereReachesTheRecord) {
  for (const Engine engine : kEngines) {
    Database database = open(engine);
    Cursor cursor;
    std::mt19937_64 random(11);
    for (int i = 0; i < 200 && !expected_.empty(); ++i) {
      const std::uint64_t wanted = random() % expected_.size();
      database.tree().seek_record(cursor, wanted);
      ASSERT_EQ(cursor.sample, wanted);
      ASSERT_EQ(to_text(database.tree().entry(cursor).key), expected_[wanted].key);
    }
  }
}

TEST_P(EveryDatabaseRead, LeavesAreSkippedAndCountedAsTheyAreWalked) {
  Database database = open(Engine::pread);
  Tree& tree = database.tree();
  std::vector<Cursor> leaves;  // on their first records
  for (Cursor cursor = tree.first(); cursor.valid(); tree.next(cursor)) {
    if (cursor.leaf().slot == 0) leaves.push_back(cursor);
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 200 && !leaves.empty(); ++i) {
    const std::size_t from = random() % leaves.size();
    const std::size_t to = from + random() % (leaves.size() - from);
    EXPECT_EQ(tree.leaves_between(leaves[from], leaves[to]), to - from);
    Cursor cursor = leaves[from];
    EXPECT_EQ(tree.skip_leaves(cursor, to - from), to - from);
    EXPECT_EQ(cursor.path, leaves[to].path);
    EXPECT_EQ(tree.skip_leaves(cursor, leaves.size()), leaves.size() - 1 - to);
    EXPECT_EQ(cursor.leaf(), leaves.back().leaf());
  }
}

TEST_P(EveryDatabaseRead, ACursorWorksInAnotherProcessesDatabase) {
  if (expected_.empty()) return;
  Database one = open(Engine::mmap);
  Database other = open(Engine::pread);
  Cursor cursor;
  one.tree().seek_record(cursor, expected_.size() / 2);
  for (std::size_t i = expected_.size() / 2; i < expected_.size(); ++i) {
    ASSERT_EQ(to_record(other.tree().entry(cursor)), expected_[i]);
    other.tree().next(cursor);
  }
  EXPECT_FALSE(cursor.valid());
}

TEST_P(EveryDatabaseRead, EverySourceDeliversStridedRuns) {
  for (const SourceEngine engine : kSourceEngines) {
    const auto source = open_records(path_, engine);
    ASSERT_EQ(source->entries(), expected_.size());
    // Rank 1 of 3 with runs of 4, then from the start again.
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t at = 4; at < expected_.size(); at += 12) {
        std::uint64_t next = at;
        source->seek(at);
        source->read(std::min<std::uint64_t>(4, expected_.size() - at), [&](const Record& record) {
          ASSERT_EQ(record.sample, next);
          ASSERT_EQ(to_text(record.key), expected_[next].key);
          ASSERT_EQ(to_text(record.value), expected_[next].value) << "record " << next;
          ++next;
        });
        ASSERT_EQ(next, std::min<std::uint64_t>(at + 4, expected_.size()));
      }
    }
    source->check_unchanged();
  }
}

TEST_P(EveryDatabaseRead, SourcesReadWithoutASeekFromTheFirstRecord) {
  for (const SourceEngine engine : kSourceEngines) {
    const auto source = open_records(path_, engine);
    std::size_t i = 0;
    source->read(expected_.size(), [&](const Record& record) {
      ASSERT_EQ(to_text(record.value), expected_[i].value) << "record " << i;
      ++i;
    });
    EXPECT_EQ(i, expected_.size());
    EXPECT_THROW(source->read(1, [](const Record&) {}), Error);
    EXPECT_THROW(source->seek(expected_.size()), Error);
  }
}

TEST_P(EveryDatabaseRead, FingerprintsOfAllSourcesAreEqual) {
  const auto fingerprint = open_records(path_, SourceEngine::liblmdb)->fingerprint();
  EXPECT_EQ(fingerprint, open_records(path_, SourceEngine::mmap)->fingerprint());
  EXPECT_EQ(fingerprint, open_records(path_, SourceEngine::pread)->fingerprint());
}

INSTANTIATE_TEST_SUITE_P(Standard, EveryDatabaseRead, every_standard_database(), name_of_case);

TEST(StandardDatabases, HaveTheShapesTheyAreNamedFor) {
  EXPECT_GE(test::standard_databases().size(), 30U);
  test::TemporaryFolder directory;
  const std::map<std::string, std::uint32_t> page_sizes = {{"deep_tree", 4096},
                                                           {"pages_of_8_KiB", 8192},
                                                           {"pages_of_16_KiB", 16384},
                                                           {"pages_of_32_KiB", 32768}};
  for (const NamedRecipe& recipe : test::standard_databases()) {
    if (!page_sizes.contains(recipe.name)) continue;
    const auto path = recipe.builder.build(directory.file(recipe.name));
    const Database database = Database::open(path, Engine::pread);
    EXPECT_EQ(database.page_size(), page_sizes.at(recipe.name));
    EXPECT_GE(database.depth(), recipe.name == "deep_tree" ? 4U : 2U);
  }
}

}  // namespace
}  // namespace forebay::lmdb
