// Which records of a database are no samples, and the same answer for every way to ask: liblmdb
// says which records there are.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "format/convention/convention_set.hpp"
#include "tests/support/lmdb_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::convention::no_samples {

using test::numbered;
using test::OracleRecord;
using test::TemporaryFolder;
using test::write_records;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Choice {
  std::string leave_out = {};
  std::string keep = {};
  ConventionName convention = ConventionName::automatic;
};

inline FormatOptions how(const Choice& choice) {
  FormatOptions options;
  options.hold = false;
  options.convention = choice.convention;
  options.leave_out = choice.leave_out;
  options.keep_records = choice.keep;
  return options;
}

inline std::unique_ptr<ConventionSet> open(const std::string& path, const Choice& choice = {}) {
  return open_by_convention(path, how(choice));
}

inline std::string refusal(const std::string& path, const Choice& choice = {}) {
  try {
    open(path, choice);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
    return error.what();
  }
  ADD_FAILURE() << path << " opens";
  return {};
}

/// Keys of records that are no samples; and that reading gives the records that are left.
inline std::vector<std::string> left_out(const std::string& path, const Choice& choice = {}) {
  std::vector<std::string> keys, samples, left;
  for (const test::OracleRecord& record : test::read_with_liblmdb(path)) left.push_back(record.key);
  const auto set = open(path, choice);
  for (const MetadataRecord& record : set->convention().databases()[0].metadata) {
    keys.push_back(record.key);
    std::erase(left, record.key);
  }
  const auto same = open_data_set(path, how(choice));
  same->keys(
      [&](std::uint64_t, std::span<const std::byte> key) { samples.emplace_back(chars_of(key)); });
  if (!set->convention().has_parts()) {
    EXPECT_EQ(samples, left);
  }
  EXPECT_EQ(samples.size(), set->facts().entries);
  return keys;
}

inline std::vector<test::OracleRecord> numbers(int count, int first = 0) {
  std::vector<test::OracleRecord> records;
  for (int i = first; i < first + count; ++i) records.push_back({std::to_string(i), "v"});
  return records;
}

inline std::string make(const test::TemporaryFolder& folder, const std::string& name,
                        std::vector<test::OracleRecord> records,
                        const std::vector<test::OracleRecord>& others) {
  records.insert(records.end(), others.begin(), others.end());
  test::write_records(folder.file(name), records);
  return folder.file(name);
}

}  // namespace forebay::convention::no_samples
