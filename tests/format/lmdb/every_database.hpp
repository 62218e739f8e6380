// A test that runs once for each standard database: recipe, path, and what liblmdb reads from it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::lmdb {

using test::OracleRecord;

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> to_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline OracleRecord to_record(const Entry& entry) {
  return {to_text(entry.key), to_text(entry.value)};
}

/// All records through our reader.
inline std::vector<OracleRecord> read_all(Database& database) {
  std::vector<OracleRecord> records;
  Cursor cursor = database.tree().first();
  for (bool more = cursor.valid(); more; more = database.tree().next(cursor)) {
    records.push_back(to_record(database.tree().entry(cursor)));
  }
  return records;
}

class EveryDatabase : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    recipe_ = test::standard_databases().at(GetParam());
    path_ = recipe_.builder.build(directory_.file(recipe_.name));
    resolved_ = resolve_dataset_path(path_);
    expected_ = test::read_with_liblmdb(resolved_.environment, resolved_.name);
  }

  Database open(Engine engine) const { return Database::open(path_, engine); }

  test::TemporaryFolder directory_;
  test::NamedRecipe recipe_;
  std::string path_;
  DatasetPath resolved_;
  std::vector<OracleRecord> expected_;
};

inline auto every_standard_database() {
  return testing::Range<std::size_t>(0, test::standard_databases().size());
}

inline std::string name_of_case(const testing::TestParamInfo<std::size_t>& tested) {
  std::string name = test::standard_databases()[tested.param].name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace forebay::lmdb
