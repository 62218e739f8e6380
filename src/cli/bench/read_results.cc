#include "cli/bench/read_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "forebay/statistics.hpp"
#include "measure/comparison.hpp"

namespace forebay::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMega = 1e6;

std::string name_of(Compute compute) { return compute == Compute::sum ? "sum" : "none"; }
std::string name_of(SourceEngine engine) {
  return engine == SourceEngine::liblmdb ? "liblmdb" : "mmap";
}

/// Whether a rank read for its node, or left that to another.
bool reads(const LoaderStatistics& rank) { return rank.bytes_requested > 0; }

/// Bytes that each reading rank asked for beyond its part of what its node consumed.
std::vector<double> extra_bytes(const std::vector<LoaderStatistics>& ranks, const Layout& layout) {
  std::map<int, double> delivered;
  std::map<int, int> readers;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    delivered[layout.node_of_rank[i]] += static_cast<double>(ranks[i].bytes_delivered);
    readers[layout.node_of_rank[i]] += reads(ranks[i]) ? 1 : 0;
  }
  std::vector<double> extra(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int node = layout.node_of_rank[i];
    if (!reads(ranks[i])) continue;
    extra[i] = static_cast<double>(ranks[i].bytes_requested) - delivered[node] / readers[node];
  }
  return extra;
}

Json ranks_of(const StrategyRun& run, const Layout& layout) {
  Json ranks = Json::array();
  const std::vector<double> extra = extra_bytes(run.ranks, layout);
  for (std::size_t i = 0; i < run.ranks.size(); ++i) {
    Json rank{{"rank", i},
              {"node", layout.node_of_rank[i]},
              {"reads", reads(run.ranks[i])},
              {"extra_bytes", extra[i]}};
    rank.update(Json::parse(forebay::to_json(run.ranks[i])));
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

Json run_to_json(const MeasuredRun& run, const Layout& layout) {
  Json json{{"kind", run.plain ? "plain" : "strategy"},
            {"repetition", run.repetition},
            {"turn", run.turn}};
  if (run.plain) {
    json["readers"] = run.plain->readers;
    json["seconds"] = run.plain->seconds;
    json["bytes"] = run.plain->bytes;
    return json;
  }
  json["strategy"] = run.variant;
  json["seconds"] = run.strategy.seconds;
  json["coalesce"] = run.strategy.coalesce;
  json["explain"] = run.strategy.explain;
  json["all"] = Json::parse(forebay::to_json(combine(run.strategy.ranks)));
  json["ranks"] = ranks_of(run.strategy, layout);
  return json;
}

/// MB/s of the best number of readers, by repetition.
std::map<int, double> plain_limits(const ReadResults& results) {
  std::map<int, double> best;
  for (const MeasuredRun& run : results.runs) {
    if (!run.plain) continue;
    const double rate = static_cast<double>(run.plain->bytes) / run.plain->seconds / kMega;
    best[run.repetition] = std::max(best[run.repetition], rate);
  }
  return best;
}

double mean(const std::vector<Json>& ranks, const char* name) {
  double sum = 0;
  for (const Json& rank : ranks) sum += rank.value(name, 0.0);
  return ranks.empty() ? 0 : sum / static_cast<double>(ranks.size());
}

/// Seconds of a reading rank for what readers do, of a rank for what consumers wait for; and what
/// reading ranks have read beyond their parts.
void add_figures_of_ranks(const StrategyRun& run, const Layout& layout, Json& figures) {
  const std::vector<double> extra = extra_bytes(run.ranks, layout);
  std::vector<Json> readers;
  std::vector<Json> consumers;
  std::vector<double> of_readers;
  for (std::size_t i = 0; i < run.ranks.size(); ++i) {
    consumers.push_back(Json::parse(forebay::to_json(run.ranks[i])));
    if (!reads(run.ranks[i])) continue;
    readers.push_back(consumers.back());
    of_readers.push_back(extra[i]);
  }
  for (const char* name :
       {"open_seconds", "seek_seconds", "read_seconds", "turn_seconds", "wait_seconds"}) {
    figures[name] = mean(readers, name);
  }
  for (const char* name : {"exposed_seconds", "skew_seconds"})
    figures[name] = mean(consumers, name);
  if (of_readers.empty()) return;
  const auto [least, most] = std::ranges::minmax(of_readers);
  figures["least_extra_bytes"] = least;
  figures["most_extra_bytes"] = most;
}

/// The figures of one run that the summary gives the spread of. `limit`: of plain reads, in MB/s.
Json figures_of(const StrategyRun& run, const ReadResults& results, std::optional<double> limit) {
  const LoaderStatistics all = combine(run.ranks);
  const double rate = static_cast<double>(all.bytes_delivered) / run.seconds / kMega;
  Json figures{{"seconds", run.seconds}, {"delivered_mb_per_second", rate}};
  if (limit) {
    const double stored = static_cast<double>(all.samples) * results.data.stored_bytes;
    figures["delivered_over_plain"] = rate / *limit;
    figures["file_bytes_over_plain"] = stored / run.seconds / kMega / *limit;
  }
  figures["first_batch_ms"] = all.first_batch_seconds * 1e3;
  figures["read_amplification"] = all.read_amplification();
  figures["asleep_share"] = all.asleep_share();
  add_figures_of_ranks(run, results.layout, figures);
  const Json counts = Json::parse(forebay::to_json(all));
  for (const char* name : {"requests", "voluntary_switches", "involuntary_switches", "major_faults",
                           "missed_pages", "redundant_pages"}) {
    if (counts.contains(name)) figures[name] = counts[name];
  }
  return figures;
}

Json summary_of(const ReadResults& results) {
  Json rows = Json::array();
  const std::map<int, double> limits = plain_limits(results);
  if (results.runs.empty()) return rows;
  for (const std::string& variant : results.variants) {
    Json row{{"strategy", variant}};
    std::vector<Json> figures;
    const MeasuredRun* last = nullptr;
    for (const MeasuredRun& run : results.runs) {
      if (run.plain || run.variant != variant) continue;
      const auto limit = limits.find(run.repetition);
      figures.push_back(
          figures_of(run.strategy, results,
                     limit == limits.end() ? std::nullopt : std::optional(limit->second)));
      last = &run;
    }
    row.update(spreads_of(figures));
    row["explain"] = last == nullptr ? "" : last->strategy.explain;
    row["coalesce"] = last == nullptr ? 1 : last->strategy.coalesce;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json plain_of(const ReadResults& results) {
  std::vector<double> rates;
  for (const auto& [repetition, rate] : plain_limits(results)) rates.push_back(rate);
  return rates.empty() ? Json() : spread_to_json(rates);
}

/// Null where nothing was speculated.
Json course_of(const SpeculationCourse& course) {
  const auto last = course.iterations;
  if (last == 0 || course.missed[last - 1] + course.redundant[last - 1] == 0) return {};
  const auto first = [last](const auto& values) {
    return std::vector<std::uint64_t>(values.begin(),
                                      values.begin() + static_cast<std::ptrdiff_t>(last));
  };
  return {{"missed", first(course.missed)}, {"redundant", first(course.redundant)}};
}

Json verified_of(const ReadResults& results) {
  Json json = Json::array();
  for (const Verified& verified : results.verified) {
    json.push_back({{"strategy", verified.variant},
                    {"coalesce", verified.coalesce},
                    {"samples", verified.samples},
                    {"digest", fmt::format("{:016x}", verified.digest)},
                    {"agrees", verified.agrees()},
                    {"speculation", course_of(verified.speculation)}});
  }
  return json;
}

Json block_runs_of(const ReadResults& results) {
  Json json = Json::array();
  for (const BlockRun& run : results.block_runs) {
    json.push_back({{"engine", run.engine == Engine::mmap ? "mmap" : "pread"},
                    {"block", run.block},
                    {"bytes", run.bytes},
                    {"seconds", run.seconds}});
  }
  return json;
}

Json seek_runs_of(const ReadResults& results) {
  Json json = Json::array();
  for (const SeekRun& run : results.seek_runs) {
    json.push_back({{"engine", name_of(run.engine)},
                    {"rank", run.rank},
                    {"repetition", run.repetition},
                    {"first_seconds", run.first_seconds},
                    {"seconds", run.seconds},
                    {"pages_visited", run.pages_visited},
                    {"records_skipped", run.records_skipped},
                    {"voluntary_switches", run.voluntary_switches}});
  }
  return json;
}

Json options_of(const ReadBenchOptions& options) {
  return {{"loader", options.loader.to_text()},
          {"repetitions", options.repetitions},
          {"seed", options.seed},
          {"cache", options.cold ? "cold" : "warm"},
          {"compute", name_of(options.compute)}};
}

}  // namespace

Json to_json(const ReadResults& results) {
  Json json = heading_of("read", results.layout);
  json["options"] = options_of(results.options);
  json["data_set"] = {{"path", results.options.dataset},
                      {"entries", results.data.entries},
                      {"file_bytes", results.data.file_bytes},
                      {"stored_bytes_per_sample", results.data.stored_bytes}};
  json["plain_mb_per_second"] = plain_of(results);
  json["summary"] = summary_of(results);
  json["skipped"] = Json::array();
  for (const Skipped& skipped : results.skipped) {
    json["skipped"].push_back({{"strategy", skipped.variant}, {"reason", skipped.reason}});
  }
  json["verified"] = verified_of(results);
  json["block_sizes"] = block_runs_of(results);
  json["seek_only"] = seek_runs_of(results);
  json["runs"] = Json::array();
  for (const MeasuredRun& run : results.runs) {
    json["runs"].push_back(run_to_json(run, results.layout));
  }
  return json;
}

}  // namespace forebay::bench
