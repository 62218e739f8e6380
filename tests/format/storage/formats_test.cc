// Every format, read through every kind of storage: the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "forebay/error.hpp"
#include "format/lmdb/database.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "format/registry.hpp"
#include "format/sample_reader.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#ifdef FOREBAY_TEST_HDF5
#include "tests/support/hdf5_builder.hpp"
#endif

namespace forebay {
namespace {

using test::LmdbBuilder;
using test::TemporaryFolder;

class Storage : public ::testing::Test {
 protected:
  Storage() {
    for (const char* name : {"none", "pieces"}) {
      std::string file = FOREBAY_TEST_PLUGINS "/plugin_";
      load_storage_plugin(file.append(name).append(".so"));
    }
  }

  /// `path` cut into pieces of `bytes`, for pieces://.
  void cut(const std::string& path, std::size_t bytes) const {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> piece(bytes);
    for (int number = 0;
         in.read(piece.data(), static_cast<std::streamsize>(bytes)), in.gcount() > 0; ++number) {
      std::string digits = std::to_string(number);
      digits.insert(0, 3 - digits.size(), '0');
      std::ofstream out(path + "." + digits, std::ios::binary);
      out.write(piece.data(), in.gcount());
    }
  }

  /// The same file by other ways.
  std::vector<std::string> urls_of(const std::string& path) const {
    cut(path, 10007);
    return {"file://" + path, "mem://" + path, "test://fine:" + path, "test://halves:" + path,
            "pieces://" + path};
  }

  TemporaryFolder folder_;
};

using Records = std::vector<test::OracleRecord>;

Records records_of(const std::string& path, Engine engine) {
  Records records;
  lmdb::Database database = lmdb::Database::open(path, engine);
  lmdb::Cursor cursor = database.tree().first();
  for (bool more = cursor.valid(); more; more = database.tree().next(cursor)) {
    const lmdb::Entry entry = database.tree().entry(cursor);
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    records.push_back({.key = text(entry.key), .value = text(entry.value)});
  }
  database.check_unchanged();
  return records;
}

TEST_F(Storage, LmdbIsTheSame) {
  const std::string path = folder_.file("db");
  LmdbBuilder().random_order(400).values(0, 9000).named("one").build(path);
  const Records expected = test::read_with_liblmdb(path, "one");
  for (const std::string& url : urls_of(path + "/data.mdb")) {
    EXPECT_EQ(records_of(url + "#one", Engine::pread), expected) << url;
  }
  for (const char* scheme : {"file://", "mem://", "test://fine:", "pieces://"}) {
    EXPECT_EQ(records_of(scheme + path + "#one", Engine::pread), expected) << scheme;
    EXPECT_EQ(records_of(scheme + path + "/#one", Engine::pread), expected) << scheme;
  }
}

TEST_F(Storage, ForeignLmdbHasNoLockAndNoSidecarBesideIt) {
  const std::string path = folder_.file("db");
  LmdbBuilder().in_order(10).build(path);
  std::filesystem::current_path(folder_.path());
  const auto found = lmdb::resolve_dataset_path("mem://" + path);
  EXPECT_TRUE(found.foreign);
  EXPECT_EQ(found.data_file, "mem://" + path + "/data.mdb");
  EXPECT_EQ(found.lock_file, "");
  EXPECT_EQ(lmdb::sidecar_path(found), "");
  EXPECT_FALSE(lmdb::Database::open("mem://" + path, Engine::mmap).holds_slot());
  EXPECT_FALSE(lmdb::resolve_dataset_path("file://" + path).foreign);
}

TEST_F(Storage, WhatIsNotThereIsNotFound) {
  for (const char* text : {"test://fine:/no/such", "mem:///no/such#x", "mem://x", "pieces:///no"}) {
    try {
      lmdb::resolve_dataset_path(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::not_found) << error.what();
    }
    EXPECT_EQ(recognise_files(text), "lmdb");
    EXPECT_THROW(open_data_set(text, {}), Error);
  }
  EXPECT_THROW(lmdb::resolve_dataset_path("nobody:///x"), Error);
  EXPECT_THROW(open_data_set("nobody:///x", {}), Error);
}

std::vector<std::byte> all_values(const std::string& text, const FormatOptions& options) {
  const auto source = open_data_set(text, options);
  SampleReader reader(*source, {});
  std::vector<std::uint64_t> ids(source->facts().entries);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  reader.read(ids);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t f = 0; f < source->facts().schema.fields.size(); ++f) {
      const auto value = reader.part(i, f);
      bytes.insert(bytes.end(), value.begin(), value.end());
    }
  }
  return bytes;
}

TEST_F(Storage, RawRecordsAreTheSame) {
  const std::string path = folder_.file("records");
  const auto bytes = test::counting_bytes(54000);
  test::write_bytes(path, bytes);
  const FormatOptions options{.format = "raw", .schema = "x:u8[540]"};
  for (const std::string& url : urls_of(path)) EXPECT_EQ(all_values(url, options), bytes) << url;
  const std::string twice = "mem://" + path + ",test://fine:" + path + "#x";
  EXPECT_EQ(all_values(twice, options).size(), 2 * bytes.size());
}

#ifdef FOREBAY_TEST_HDF5
TEST_F(Storage, Hdf5IsTheSame) {
  const std::string path = folder_.file("data.h5");
  test::Hdf5Builder()
      .add({.name = "x", .shape = {300, 50}})
      .add({.name = "y", .shape = {300, 7}, .chunk = {40, 7}, .deflate = 6})
      .build(path);
  const auto expected = all_values(path, {});
  ASSERT_EQ(expected.size(), 300U * 57 * 2);
  for (const std::string& url : urls_of(path)) {
    EXPECT_EQ(recognise_files(url), "hdf5") << url;
    EXPECT_EQ(all_values(url, {}), expected) << url;
    EXPECT_EQ(all_values(url + "#x", {}).size(), 300U * 50 * 2) << url;
  }
}
#endif

}  // namespace
}  // namespace forebay
