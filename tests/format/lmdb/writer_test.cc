// The writer grows its map by itself, and what it leaves behind is always whole batches.
#include "format/lmdb/writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/format/lmdb/every_database.hpp"

namespace forebay::lmdb {
namespace {

std::string key_of(std::uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(8 - text.size(), '0') + text;
}

void put(Writer& writer, std::uint64_t number, std::size_t size = 100) {
  writer.put(to_bytes(key_of(number)), to_bytes(test::test_value(1, number, size)));
}

TEST(Writer, GrowsItsMapWithoutLosingARecord) {
  const test::TemporaryFolder directory;
  {
    Writer writer(directory.path(), {.commit_every = 300, .map_size = 1 << 20, .sync = false});
    for (std::uint64_t i = 0; i < 2000; ++i) put(writer, i, 9000);
    writer.commit();
    EXPECT_EQ(writer.entries(), 2000U);
  }
  const auto records = test::read_with_liblmdb(directory.path());
  ASSERT_EQ(records.size(), 2000U);
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ(records[i].key, key_of(i));
    ASSERT_EQ(records[i].value, test::test_value(1, i, 9000));
  }
}

TEST(Writer, GrowsForOneValueLargerThanTheMap) {
  const test::TemporaryFolder directory;
  Writer writer(directory.path(), {.map_size = 1 << 20, .sync = false});
  put(writer, 0, 30'000'000);
  writer.commit();
  EXPECT_EQ(test::read_with_liblmdb(directory.path()).at(0).value.size(), 30'000'000U);
}

TEST(Writer, LeavesWholeBatchesWhenInterrupted) {
  const test::TemporaryFolder directory;
  {
    Writer writer(directory.path(), {.commit_every = 100, .sync = false});
    for (std::uint64_t i = 0; i < 250; ++i) put(writer, i);
  }
  EXPECT_EQ(test::read_with_liblmdb(directory.path()).size(), 200U);
}

TEST(Writer, ContinuesBehindTheLastKey) {
  const test::TemporaryFolder directory;
  {
    Writer writer(directory.path(), {.commit_every = 100, .sync = false, .append = true});
    EXPECT_TRUE(writer.last_key().empty());
    for (std::uint64_t i = 0; i < 250; ++i) put(writer, i);
  }
  Writer writer(directory.path(), {.commit_every = 100, .sync = false, .append = true});
  EXPECT_EQ(to_text(writer.last_key()), key_of(199));
  for (std::uint64_t i = writer.entries(); i < 300; ++i) put(writer, i);
  writer.commit();
  EXPECT_EQ(test::read_with_liblmdb(directory.path()).size(), 300U);
}

TEST(Writer, WritesNamedDatabasesAndIntegerKeysAndSingleFiles) {
  const test::TemporaryFolder directory;
  const std::string file = directory.file("one.lmdb");
  {
    Writer writer(file, {.sync = false, .single_file = true, .integer_keys = true, .name = "ids"});
    for (std::uint64_t i = 300; i-- > 0;) {
      writer.put(std::as_bytes(std::span(&i, 1)), to_bytes(std::to_string(i)));
    }
    writer.commit();
  }
  Database database = Database::open(file + "#ids", Engine::mmap);
  const auto records = read_all(database);
  ASSERT_EQ(records.size(), 300U);
  EXPECT_EQ(records[256].value, "256");
}

TEST(Writer, ReplacesErasesAndFinds) {
  const test::TemporaryFolder directory;
  Writer writer(directory.path(), {.sync = false});
  put(writer, 1);
  put(writer, 2);
  put(writer, 1, 7);
  writer.erase(to_bytes(key_of(2)));
  writer.erase(to_bytes(key_of(3)));
  writer.commit();
  std::vector<std::byte> value;
  EXPECT_TRUE(writer.find(to_bytes(key_of(1)), value));
  EXPECT_EQ(value.size(), 7U);
  EXPECT_FALSE(writer.find(to_bytes(key_of(2)), value));
}

TEST(Writer, NamesTheKeyThatIsNotPossible) {
  const test::TemporaryFolder directory;
  Writer writer(directory.path(), {.sync = false, .append = true});
  put(writer, 5);
  put(writer, 4);
  try {
    writer.commit();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.where().key, key_of(4));
  }
  writer.put(to_bytes(std::string(600, 'k')), {});
  EXPECT_THROW(writer.commit(), Error);
  put(writer, 6);
  writer.commit();
  EXPECT_EQ(writer.entries(), 1U);
}

TEST(Writer, RefusesAnExistingDatabaseOfAnotherKind) {
  const test::TemporaryFolder directory;
  test::LmdbBuilder().in_order(10).build(directory.path());
  try {
    const Writer writer(directory.path(), {.integer_keys = true});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("keys that are not integers"));
  }
  EXPECT_EQ(test::read_with_liblmdb(directory.path()).size(), 10U);
}

TEST(Writer, NamesTheDirectoryThatCannotBeMade) {
  const test::TemporaryFolder directory;
  test::LmdbBuilder().in_order(1).single_file().build(directory.path());
  EXPECT_THROW(Writer(directory.file("images.lmdb/below"), {}), Error);
}

}  // namespace
}  // namespace forebay::lmdb
