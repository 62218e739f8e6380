#include "cli/bench/load_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "forebay/loader.hpp"
#include "program/output.hpp"

namespace forebay::bench {
namespace {

void compute(std::chrono::nanoseconds duration, ComputeBy by) {
  if (duration.count() == 0) return;
  if (by == ComputeBy::sleep) return std::this_thread::sleep_for(duration);
  const std::int64_t end = now_ns() + duration.count();
  while (now_ns() < end) {
  }
}

LoadTimes consume(Loader& loader, const LoadOptions& options) {
  LoadTimes times;
  const double begin = now_seconds();
  bool first = true;
  for (;;) {
    const double asked = now_seconds();
    const auto batch = loader.next();
    const double got = now_seconds();
    (first ? times.first : times.waited) += got - asked;
    first = false;
    if (!batch) break;
    compute(options.compute, options.compute_by);
    times.computing += now_seconds() - got;
  }
  times.total = now_seconds() - begin;
  return times;
}

LoadRun run_variant(const std::shared_ptr<Communicator>& comm, const LoadOptions& options,
                    const Variant& variant, LoadResults& results) {
  LoaderOptions how = variant.options;
  how.one_at_a_time = true;
  Loader loader = Loader::open(comm, options.dataset, how);
  results.entries = loader.entries();
  comm->set_timeout(variant.options.patience_with_ranks());
  comm->barrier();
  LoadTimes times;
  LoaderStatistics statistics;
  collectively(*comm, [&] {
    times = consume(loader, options);
    statistics = loader.statistics();
  });
  return {.variant = variant.name,
          .explain = broadcast_text(*comm, loader.explain(), 0),
          .times = gather_all(*comm, times),
          .ranks = gather_all(*comm, statistics)};
}

}  // namespace

LoadResults run_load_bench(const std::shared_ptr<Communicator>& comm, const LoadOptions& options) {
  LoadResults results{.options = options, .layout = find_layout(*comm)};
  std::vector<Variant> variants{{"as given", options.loader}};
  std::vector<std::string> files;
  collectively(*comm, [&] {
    if (!options.variants.empty()) variants = parse_variants(options.variants, options.loader);
    if (!options.cold) files = files_of(options.dataset);
  });
  for (const Variant& variant : variants) results.variants.push_back(variant.name);
  PageCache cache(*comm, results.layout, files, options.cold);
  std::unique_ptr<Progress> progress;
  if (comm->rank() == 0) {
    progress = std::make_unique<Progress>(
        "measuring", static_cast<std::uint64_t>(options.repetitions) * variants.size());
  }
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    int turn = 0;
    for (const Variant& variant : in_turn(variants, options.seed, repetition)) {
      cache.prepare();
      results.runs.push_back(run_variant(comm, options, variant, results));
      results.runs.back().repetition = repetition;
      results.runs.back().turn = turn++;
      if (progress) progress->update(results.runs.size());
    }
  }
  return results;
}

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMega = 1e6;

template <typename Figure>
double mean_of_ranks(const LoadRun& run, Figure figure) {
  double sum = 0;
  for (const LoadTimes& rank : run.times) sum += rank.*figure;
  return sum / static_cast<double>(run.times.size());
}

double slowest(const LoadRun& run) {
  return std::ranges::max(run.times, {}, &LoadTimes::total).total;
}

/// The figures of one run that the summary gives the spread of.
Json figures_of(const LoadRun& run) {
  const LoaderStatistics all = combine(run.ranks);
  const auto ranks = static_cast<double>(run.ranks.size());
  const double seconds = slowest(run);
  const double exposed = mean_of_ranks(run, &LoadTimes::waited);
  return {{"seconds", seconds},
          {"computing_seconds", mean_of_ranks(run, &LoadTimes::computing)},
          {"first_seconds", mean_of_ranks(run, &LoadTimes::first)},
          {"exposed_seconds", exposed},
          {"exposed_share", exposed / seconds},
          {"read_seconds", (all.seek_seconds + all.read_seconds) / ranks},
          {"samples_per_second", static_cast<double>(all.samples) / seconds},
          {"mb_per_second", static_cast<double>(all.bytes_delivered) / seconds / kMega},
          {"requests", all.requests},
          {"read_amplification", all.read_amplification()}};
}

Json run_to_json(const LoadRun& run) {
  Json json{{"variant", run.variant}, {"repetition", run.repetition}, {"turn", run.turn}};
  json.update(figures_of(run));
  json["explain"] = run.explain;
  json["all"] = Json::parse(forebay::to_json(combine(run.ranks)));
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const LoadTimes& times = run.times[rank];
    Json of_rank{{"rank", rank},
                 {"total_seconds", times.total},
                 {"first_seconds", times.first},
                 {"waited_seconds", times.waited},
                 {"computing_seconds", times.computing}};
    of_rank.update(Json::parse(forebay::to_json(run.ranks[rank])));
    json["ranks"].push_back(std::move(of_rank));
  }
  return json;
}

Json summary_of(const LoadResults& results, const std::string& variant) {
  Json row{{"variant", variant}};
  std::vector<Json> figures;
  for (const LoadRun& run : results.runs) {
    if (run.variant != variant) continue;
    figures.push_back(figures_of(run));
    row["explain"] = run.explain;
  }
  row.update(spreads_of(figures));
  return row;
}

Json options_of(const LoadOptions& options) {
  return {{"loader", options.loader.to_text()},
          {"repetitions", options.repetitions},
          {"seed", options.seed},
          {"cache", options.cold ? "cold" : "warm"},
          {"compute_ms", static_cast<double>(options.compute.count()) * 1e-6},
          {"compute_by", options.compute_by == ComputeBy::sleep ? "sleep" : "spin"}};
}

}  // namespace

Json to_json(const LoadResults& results) {
  Json json = heading_of("load", results.layout);
  json["options"] = options_of(results.options);
  json["data_set"] = {{"path", results.options.dataset}, {"entries", results.entries}};
  json["summary"] = Json::array();
  for (const std::string& variant : results.variants) {
    json["summary"].push_back(summary_of(results, variant));
  }
  json["runs"] = Json::array();
  for (const LoadRun& run : results.runs) json["runs"].push_back(run_to_json(run));
  return json;
}

std::string load_table(const Json& results) {
  const Json& options = results["options"];
  std::string text = fmt::format(
      "{}: {} samples\n{} ranks on {} nodes, {} cache, {:g} ms of computing a batch ({}), medians "
      "(least-most) of {} repetitions\n\n",
      results["data_set"]["path"].get<std::string>(), human_count(results["data_set"]["entries"]),
      results["ranks"].get<int>(), results["nodes"].get<int>(), options["cache"].get<std::string>(),
      options["compute_ms"].get<double>(), options["compute_by"].get<std::string>(),
      options["repetitions"].get<int>());
  Table table{{"variant", "seconds", "computing", "first", "exposed", "exposed %", "read", "MB/s",
               "samples/s", "requests", "amplification"}};
  for (const Json& row : results["summary"]) {
    table.push_back({row["variant"], spread_to_text(row, "seconds", 3),
                     fmt::format("{:.3f}", median_of(row, "computing_seconds")),
                     fmt::format("{:.3f}", median_of(row, "first_seconds")),
                     spread_to_text(row, "exposed_seconds", 3),
                     fmt::format("{:.2f}", 100 * median_of(row, "exposed_share")),
                     fmt::format("{:.3f}", median_of(row, "read_seconds")),
                     spread_to_text(row, "mb_per_second", 1),
                     fmt::format("{:.0f}", median_of(row, "samples_per_second")),
                     fmt::format("{:.0f}", median_of(row, "requests")),
                     fmt::format("{:.2f}", median_of(row, "read_amplification"))});
  }
  return text + to_text(table);
}

}  // namespace forebay::bench
