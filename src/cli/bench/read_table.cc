#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/bench/read_bench.hpp"
#include "measure/comparison.hpp"
#include "program/output.hpp"

namespace forebay::bench {
namespace {

using Json = nlohmann::ordered_json;
std::string heading(const Json& results) {
  const Json& data = results["data_set"];
  const double stored = data["stored_bytes_per_sample"];
  std::string text = fmt::format(
      "{}: {} samples in a file of {}, {:.0f} bytes of pages a sample\n"
      "{} ranks on {} nodes, {} cache, medians (least-most) of {} repetitions\n",
      data["path"].get<std::string>(), human_count(data["entries"]),
      human_bytes(data["file_bytes"]), stored, results["ranks"].get<int>(),
      results["nodes"].get<int>(), results["options"]["cache"].get<std::string>(),
      results["options"]["repetitions"].get<int>());
  if (!results["plain_mb_per_second"].is_null()) {
    text += fmt::format("plain preads of 8 MiB, best of 1 to 16 readers: {} MB/s of file\n",
                        spread_to_text(results, "plain_mb_per_second", 0));
  }
  return text + "\n";
}

std::string rates(const Json& summary) {
  Table table{{"strategy", "delivered MB/s", "delivered/plain", "file bytes/plain", "amplification",
               "first batch ms"}};
  for (const Json& row : summary) {
    table.push_back({row["strategy"], spread_to_text(row, "delivered_mb_per_second", 0),
                     spread_to_text(row, "delivered_over_plain", 2),
                     spread_to_text(row, "file_bytes_over_plain", 2),
                     fmt::format("{:.2f}", median_of(row, "read_amplification")),
                     fmt::format("{:.1f}", median_of(row, "first_batch_ms"))});
  }
  return to_text(table) + "\n";
}

std::string times(const Json& summary) {
  Table table{
      {"seconds", "total", "open", "seek", "read", "turn", "reader waits", "exposed", "skew"}};
  for (const Json& row : summary) {
    std::vector<std::string> cells{row["strategy"]};
    for (const char* name : {"seconds", "open_seconds", "seek_seconds", "read_seconds",
                             "turn_seconds", "wait_seconds", "exposed_seconds", "skew_seconds"}) {
      cells.push_back(fmt::format("{:.3f}", median_of(row, name)));
    }
    table.push_back(std::move(cells));
  }
  return to_text(table) +
         "open to reader waits: mean of the reading ranks; exposed, skew: mean of all ranks\n\n";
}

std::string counts(const Json& summary) {
  Table table{{"counts", "requests", "switches vol.", "invol.", "major faults", "asleep",
               "extra MB by reading rank"}};
  for (const Json& row : summary) {
    table.push_back({row["strategy"], fmt::format("{:.0f}", median_of(row, "requests")),
                     fmt::format("{:.0f}", median_of(row, "voluntary_switches")),
                     fmt::format("{:.0f}", median_of(row, "involuntary_switches")),
                     fmt::format("{:.0f}", median_of(row, "major_faults")),
                     fmt::format("{:.0f} %", 100 * median_of(row, "asleep_share")),
                     fmt::format("{:.1f} to {:.1f}", median_of(row, "least_extra_bytes") / 1e6,
                                 median_of(row, "most_extra_bytes") / 1e6)});
  }
  return to_text(table) + "\n";
}

std::string block_sizes(const Json& runs) {
  std::map<std::uint64_t, std::map<std::string, double>> rates;
  for (const Json& run : runs) {
    rates[run["block"]][run["engine"]] =
        run["bytes"].get<double>() / run["seconds"].get<double>() / 1e6;
  }
  Table table{{"block", "mmap MB/s", "pread MB/s"}};
  for (auto& [block, of_engine] : rates) {
    table.push_back({fmt::format("{} KiB", block >> 10), fmt::format("{:.0f}", of_engine["mmap"]),
                     fmt::format("{:.0f}", of_engine["pread"])});
  }
  return to_text(table) + "\n";
}

std::string seeks(const Json& runs) {
  Table table{{"seek only", "rank", "first ms", "all ms", "pages", "records skipped", "switches"}};
  for (const Json& run : runs) {
    table.push_back({run["engine"], fmt::format("{}", run["rank"].get<int>()),
                     fmt::format("{:.2f}", run["first_seconds"].get<double>() * 1e3),
                     fmt::format("{:.2f}", run["seconds"].get<double>() * 1e3),
                     human_count(run["pages_visited"]), human_count(run["records_skipped"]),
                     human_count(run["voluntary_switches"])});
  }
  return to_text(table) + "\n";
}

std::string verified(const Json& results) {
  std::string names;
  for (const Json& one : results["verified"]) {
    names += (names.empty() ? "" : ", ") + one["strategy"].get<std::string>();
  }
  if (names.empty()) return "not verified\n";
  return "verified, every sample as liblmdb delivers it: " + names + "\n";
}

}  // namespace

std::string to_text(const Json& results) {
  std::string text = heading(results);
  const Json& summary = results["summary"];
  if (!summary.empty()) text += rates(summary) + times(summary) + counts(summary);
  if (!results["seek_only"].empty()) text += seeks(results["seek_only"]);
  if (!results["block_sizes"].empty()) text += block_sizes(results["block_sizes"]);
  for (const Json& skipped : results["skipped"]) {
    text += fmt::format("left out: {}: {}\n", skipped["strategy"].get<std::string>(),
                        skipped["reason"].get<std::string>());
  }
  return text + verified(results);
}

}  // namespace forebay::bench
