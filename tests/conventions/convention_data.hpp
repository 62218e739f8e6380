// Data sets of every convention, and what a reader has to give of each.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/loader/draw_data.hpp"
#include "tests/support/lmdb_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

/// A data set, the options that open it, and how many databases it has.
struct ConventionCase {
  std::string name;
  DrawData data;
  LoaderOptions options = {};
};

inline std::vector<OracleRecord> numbered_records(std::uint64_t count, std::uint64_t seed) {
  std::vector<OracleRecord> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    records.push_back({std::to_string(i), test_value(seed, i, i % 5 == 0 ? 0 : i * 131 % 7000)});
  }
  return records;
}

inline std::vector<OracleRecord> by_key(std::vector<OracleRecord> records) {
  std::ranges::sort(records, {}, &OracleRecord::key);
  return records;
}

inline std::vector<OracleRecord> paired(const std::vector<OracleRecord>& a,
                                        const std::vector<OracleRecord>& b) {
  std::vector<OracleRecord> samples;
  for (std::size_t i = 0; i < a.size(); ++i) {
    samples.push_back({a[i].key, packed({a[i].value, b[i].value})});
  }
  return samples;
}

inline std::vector<ConventionCase> every_convention(const TemporaryFolder& folder) {
  std::vector<ConventionCase> cases;
  const auto file = [&](const std::string& name) { return folder.file(name); };

  write_records(file("grouped"), grouped_records(130));
  write_records(file("grouped"), {{"num-samples", "130"}});
  cases.push_back({"grouped", {file("grouped"), packed_samples(130)}});

  write_records(file("unpadded"), grouped_records(75, 0, 1));
  cases.push_back({"unpadded groups", {file("unpadded"), packed_samples(75, 0, 1)}});

  const auto numbers = numbered_records(140, 3);
  write_records(file("numbers"), numbers);
  cases.push_back({"by number", {file("numbers"), numbers}});
  cases.back().options.order_by = KeyOrder::number;

  write_records(file("counted"), numbers);
  write_records(file("counted"), {{"length", "140"}, {"__keys__", "pickled"}, {"!", ""}});
  auto counted = by_key(numbers);
  counted.insert(counted.begin(), {"!", ""});
  write_records(file("counted"), {{"length", "141"}});
  cases.push_back({"with metadata", {file("counted"), counted}});

  std::vector<OracleRecord> listed = by_key(numbered_records(90, 4));
  write_records(file("listed.lmdb"), listed);
  std::rotate(listed.begin(), listed.begin() + 31, listed.end());
  std::swap(listed[3], listed[70]);
  std::ofstream list(file("listed.lmdb/meta_info.txt"));
  for (const OracleRecord& record : listed) list << record.key << ".png (1,1,3) 1\n";
  cases.push_back({"meta_info", {file("listed.lmdb"), listed}});

  std::vector<OracleRecord> joined;
  for (const std::uint64_t part : {0, 1, 2}) {
    const auto records = by_key(numbered_records(20 + part * 31, 10 + part));
    write_records(file("part-" + std::to_string(part)), records);
    joined.insert(joined.end(), records.begin(), records.end());
  }
  cases.push_back({"one behind the other", {file("part-*"), joined}});

  const auto a = by_key(numbered_records(110, 20));
  const auto b = by_key(numbered_records(110, 21));
  write_records(file("a"), a);
  write_records(file("b"), b);
  cases.push_back({"pairs", {"lq=" + file("a") + "&gt=" + file("b"), paired(a, b)}});

  write_records(file("one"), {{"image-1", ""}, {"label-1", "x"}});
  cases.push_back({"one sample", {file("one"), {{"1", packed({"", "x"})}}}});
  // First values are empty, and say nothing of the others.
  for (ConventionCase& one : cases) one.options.codec = "bytes";
  return cases;
}

}  // namespace forebay::test
