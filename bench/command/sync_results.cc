// What `forebay-bench sync` found, for machines and for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/command/sync_bench.hpp"
#include "core/number_text.hpp"
#include "measure/comparison.hpp"
#include "program/output.hpp"
#include "sync/gradient_sum.hpp"

namespace forebay::bench {
namespace {

using Json = nlohmann::ordered_json;
using emulation::TrainingFigures;

constexpr const char* kInputs[] = {"real", "synthetic", "none"};
constexpr const char* kKinds[] = {"host", "kernel", "gradient", "allreduce", "update"};

template <typename Figure>
double mean(const SyncRun& run, const Figure& figure) {
  double sum = 0;
  for (const TrainingFigures& rank : run.ranks) sum += static_cast<double>(figure(rank));
  return sum / static_cast<double>(run.ranks.size());
}

double slowest(const SyncRun& run) {
  return std::ranges::max(run.ranks, {}, &TrainingFigures::seconds).seconds;
}

/// Per step and rank, in milliseconds.
Json step_figures(const SyncRun& run, double steps) {
  const auto ms = [&](const auto& figure) { return 1e3 * mean(run, figure) / steps; };
  const auto of_sync = [&](double SyncStatistics::*part) {
    return ms([part](const TrainingFigures& rank) { return rank.sync.*part; });
  };
  return {{"step_ms", 1e3 * slowest(run) / steps},
          {"exposed_ms", ms([](const TrainingFigures& rank) { return rank.exposed_seconds; })},
          {"idle_ms", ms([](const TrainingFigures& rank) { return rank.device_idle_seconds; })},
          {"input_ms", ms([](const TrainingFigures& rank) { return rank.input_wait_seconds; })},
          {"waiting_ms", of_sync(&SyncStatistics::wait_seconds)},
          {"copying_ms", of_sync(&SyncStatistics::copy_seconds)},
          {"summing_ms", of_sync(&SyncStatistics::transfer_seconds)}};
}

/// Counts of a step.
Json count_figures(const SyncRun& run, double steps) {
  const auto of_sync = [&](std::uint64_t SyncStatistics::*count) {
    return mean(run, [count](const TrainingFigures& rank) { return rank.sync.*count; }) / steps;
  };
  return {{"messages", of_sync(&SyncStatistics::negotiations)},
          {"cycles", of_sync(&SyncStatistics::cycles)},
          {"empty_cycles", of_sync(&SyncStatistics::empty_cycles)},
          {"transfers", of_sync(&SyncStatistics::transfers)},
          {"fallbacks", of_sync(&SyncStatistics::fallbacks)}};
}

/// What threads cost, a second.
Json thread_figures(const SyncRun& run) {
  const auto rate = [&](const auto& figure) {
    return mean(run, [&](const TrainingFigures& rank) {
      return static_cast<double>(figure(rank)) / rank.seconds;
    });
  };
  const auto progress_user = [](const TrainingFigures& r) { return r.sync.thread_user_seconds; };
  const auto progress_system = [](const TrainingFigures& r) {
    return r.sync.thread_system_seconds;
  };
  return {{"progress_share",
           rate([&](const TrainingFigures& r) { return progress_user(r) + progress_system(r); })},
          {"progress_user_share", rate(progress_user)},
          {"progress_system_share", rate(progress_system)},
          {"progress_evictions",
           rate([](const TrainingFigures& r) { return r.sync.thread_involuntary_switches; })},
          {"progress_sleeps",
           rate([](const TrainingFigures& r) { return r.sync.thread_voluntary_switches; })},
          {"scheduler_evictions",
           rate([](const TrainingFigures& r) { return r.scheduler.involuntary_switches; })},
          {"input_evictions",
           rate([](const TrainingFigures& r) { return r.input.involuntary_switches; })},
          {"scheduler_share", rate([](const TrainingFigures& r) {
             return r.scheduler.user_seconds + r.scheduler.system_seconds;
           })},
          {"input_share", rate([](const TrainingFigures& r) {
             return r.input.user_seconds + r.input.system_seconds;
           })},
          {"window_share", rate([](const TrainingFigures& r) { return r.susceptible_seconds; })}};
}

/// The figures of one run that the summary gives the spread of.
Json figures_of(const SyncRun& run, const SyncBenchOptions& options) {
  const auto steps = static_cast<double>(options.training.steps);
  const double images =
      steps * static_cast<double>(options.batch) * static_cast<double>(run.ranks.size());
  Json figures{{"images_per_second", images / slowest(run)}};
  figures.update(step_figures(run, steps));
  figures.update(count_figures(run, steps));
  figures.update(thread_figures(run));
  return figures;
}

Json cost_to_json(const ProcessUsage& cost) {
  return {{"user_seconds", cost.user_seconds},
          {"system_seconds", cost.system_seconds},
          {"voluntary_switches", cost.voluntary_switches},
          {"involuntary_switches", cost.involuntary_switches}};
}

Json rank_to_json(const TrainingFigures& figures) {
  const SyncStatistics& sync = figures.sync;
  Json json{{"seconds", figures.seconds},
            {"input_wait_seconds", figures.input_wait_seconds},
            {"device_idle_seconds", figures.device_idle_seconds},
            {"exposed_seconds", figures.exposed_seconds},
            {"susceptible_seconds", figures.susceptible_seconds},
            {"scheduler", cost_to_json(figures.scheduler)},
            {"input", cost_to_json(figures.input)},
            {"progress", cost_to_json({.voluntary_switches = sync.thread_voluntary_switches,
                                       .involuntary_switches = sync.thread_involuntary_switches,
                                       .user_seconds = sync.thread_user_seconds,
                                       .system_seconds = sync.thread_system_seconds})}};
  for_each_figure([&json](const char* name, const auto& figure) { json[name] = figure; }, sync);
  return json;
}

Json run_to_json(const SyncRun& run, const SyncBenchOptions& options) {
  Json json{
      {"net", run.net}, {"strategy", run.way}, {"repetition", run.repetition}, {"turn", run.turn}};
  json.update(figures_of(run, options));
  json["explain"] = run.explain;
  json["placement"] = run.cores;
  json["ranks"] = Json::array();
  for (const TrainingFigures& rank : run.ranks) json["ranks"].push_back(rank_to_json(rank));
  return json;
}

Json summary_of(const SyncResults& results, const std::string& net, const std::string& way) {
  Json row{{"net", net}, {"strategy", way}};
  std::vector<Json> figures;
  for (const SyncRun& run : results.runs) {
    if (run.net != net || run.way != way) continue;
    figures.push_back(figures_of(run, results.options));
    row["explain"] = run.explain;
    row["placement"] = run.cores;
  }
  row.update(spreads_of(figures));
  return row;
}

/// Rows of one network, each with its gain over the first.
void add_summary(const SyncResults& results, const std::string& net, Json& summary) {
  double base = 0;
  for (const std::string& way : results.options.ways) {
    Json row = summary_of(results, net, way);
    const double rate = median_of(row, "images_per_second");
    if (base == 0) base = rate;
    row["gain"] = rate / base - 1;
    summary.push_back(std::move(row));
  }
}

Json options_of(const SyncBenchOptions& options) {
  const emulation::TrainingOptions& training = options.training;
  return {
      {"batch", options.batch},
      {"steps", training.steps},
      {"warmup", training.warmup},
      {"repetitions", options.repetitions},
      {"seed", options.seed},
      {"input", kInputs[static_cast<std::size_t>(training.feed.input)]},
      {"input_threads", training.feed.threads},
      {"ahead", training.feed.ahead},
      {"cycle_ms", static_cast<double>(options.engine.cycle.count()) * 1e-3},
      {"gs_every", options.engine.gs_every},
      {"fusion_bytes", options.engine.fusion_bytes ? Json(*options.engine.fusion_bytes) : Json()},
      {"cache_capacity", options.engine.cache_capacity},
      {"time_scale", options.time_scale},
      {"shrink", options.shrink},
      {"dispatch_us", static_cast<double>(training.dispatch.count()) * 1e-3},
      {"queue", training.queue},
      {"scp", options.scp},
      {"placement", options.placement},
      {"capture", options.capture}};
}

Json net_to_json(const SyncNet& net) {
  return {{"net", net.name},
          {"nodes", net.nodes},
          {"edges", net.edges},
          {"tensors", net.tensors},
          {"gradient_bytes", net.gradient_bytes},
          {"planned_transfers", net.transfers},
          {"plan_ms", net.plan_seconds * 1e3},
          {"device_ms", net.device_seconds * 1e3}};
}

std::string head_of(const Json& results) {
  const Json& options = results["options"];
  return fmt::format(
      "{} ranks on {} nodes, {} images a rank and step, input {} by {} threads, cycle {:g} ms, "
      "device time x{:g}, gradients /{}; medians (least-most) of {} repetitions of {} steps\n",
      results["ranks"].get<int>(), results["nodes"].get<int>(),
      options["batch"].get<std::uint64_t>(), options["input"].get<std::string>(),
      options["input_threads"].get<unsigned>(), options["cycle_ms"].get<double>(),
      options["time_scale"].get<double>(), options["shrink"].get<std::uint64_t>(),
      options["repetitions"].get<int>(), options["steps"].get<std::uint64_t>());
}

Table::value_type table_row(const Json& row) {
  const auto number = [&](const char* name, int decimals, double factor = 1) {
    return fmt::format("{:.{}f}", factor * median_of(row, name), decimals);
  };
  return {row["strategy"],
          spread_to_text(row, "images_per_second", 1),
          fmt::format("{:+.1f} %", 100 * row["gain"].get<double>()),
          number("step_ms", 1),
          number("exposed_ms", 2),
          number("idle_ms", 2),
          number("input_ms", 2),
          fmt::format("{}/{}/{}", number("waiting_ms", 1), number("copying_ms", 1),
                      number("summing_ms", 1)),
          number("progress_share", 1, 100),
          fmt::format("{}/{}/{}", number("scheduler_evictions", 0), number("input_evictions", 0),
                      number("progress_evictions", 0)),
          number("messages", 1),
          number("window_share", 1, 100)};
}

}  // namespace

Json to_json(const SyncResults& results) {
  Json json = heading_of("sync", results.layout);
  json["options"] = options_of(results.options);
  json["nets"] = Json::array();
  json["summary"] = Json::array();
  for (const SyncNet& net : results.nets) {
    json["nets"].push_back(net_to_json(net));
    add_summary(results, net.name, json["summary"]);
  }
  json["runs"] = Json::array();
  for (const SyncRun& run : results.runs) {
    json["runs"].push_back(run_to_json(run, results.options));
  }
  return json;
}

Json operations_json(const SyncBenchOptions& options) {
  Json json{{"nets", Json::array()}};
  for (const std::string& name : options.nets) {
    const nets::Net net = nets::make_net(name);
    const nets::TrainingStep step = make_step(net, options);
    Json operations = Json::array();
    for (const nets::Operation& operation : step.operations) {
      operations.push_back({{"kind", kKinds[static_cast<std::size_t>(operation.kind)]},
                            {"takes_ns", operation.takes.count()},
                            {"tensor", operation.tensor}});
    }
    Json tensors = Json::array();
    for (const nets::Parameter& tensor : step.tensors) {
      tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
    }
    json["nets"].push_back({{"net", name},
                            {"batch", options.batch},
                            {"side", net.side},
                            {"operations", std::move(operations)},
                            {"tensors", std::move(tensors)}});
  }
  return json;
}

std::string sync_table(const Json& results) {
  std::string text = head_of(results);
  for (const Json& net : results["nets"]) {
    text += fmt::format(
        "\n{}: {} nodes and {} edges planned in {:.2f} ms; {} gradients of {} in {} transfers; "
        "{:.1f} "
        "ms of the device a step\n\n",
        net["net"].get<std::string>(), human_count(net["nodes"]), human_count(net["edges"]),
        net["plan_ms"].get<double>(), net["tensors"].get<std::uint64_t>(),
        human_bytes(net["gradient_bytes"]), net["planned_transfers"].get<std::uint64_t>(),
        net["device_ms"].get<double>());
    Table table{{"strategy", "images/s", "gain", "step ms", "exposed", "idle", "input",
                 "wait/copy/sum", "progress %", "evictions", "messages", "window %"}};
    for (const Json& row : results["summary"]) {
      if (row["net"] == net["net"]) table.push_back(table_row(row));
    }
    text += to_text(table);
  }
  return text;
}

}  // namespace forebay::bench
