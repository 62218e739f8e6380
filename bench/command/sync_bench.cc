#include "bench/command/sync_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"

namespace forebay::bench {
namespace {

using emulation::Gradients;
using emulation::TrainingFigures;
using nets::TrainingStep;

SyncNet describe(const nets::Net& net, const TrainingStep& step, const SyncOptions& engine) {
  constexpr int kTries = 5;
  const GraphFile file = nets::graph_of(step);
  SyncNet known{.name = net.name,
                .nodes = file.graph.nodes().size(),
                .edges = file.graph.edges(),
                .tensors = step.tensors.size(),
                .device_seconds = std::chrono::duration<double>(step.device_time()).count()};
  for (const nets::Parameter& tensor : step.tensors) {
    known.gradient_bytes += tensor.elements() * sizeof(float);
  }
  for (int i = 0; i < kTries; ++i) {
    const double begin = now_seconds();
    known.transfers = plan_transfers(file.graph, file.fetches, engine.fusion_bytes).buffers.size();
    const double took = now_seconds() - begin;
    known.plan_seconds = i == 0 ? took : std::min(known.plan_seconds, took);
  }
  return known;
}

/// Cores for the components of this benchmark: who reads no files needs none for it.
CorePlan place(Communicator& comm, const SyncBenchOptions& options, const SyncWay& way) {
  const emulation::FeedOptions& feed = options.training.feed;
  const bool decodes = feed.input != emulation::Input::none;
  return plan_cores(comm, way.own_cores || options.scp ? options.placement : "shared",
                    {.progress = 1, .compute = 1, .decode = decodes ? feed.threads : 0, .io = 0});
}

SyncRun run_way(const std::shared_ptr<Communicator>& comm, const SyncBenchOptions& options,
                const TrainingStep& step, std::uint64_t side, const std::string& name) {
  const emulation::SyncSetup setup{.way = find_sync_way(name, emulation::emulated_ways()),
                                   .engine = options.engine,
                                   .capture = options.capture};
  emulation::TrainingOptions training = options.training;
  training.feed.batch = options.batch;
  training.feed.side = side;
  const CorePlan cores = place(*comm, options, setup.way);
  Gradients gradients(step);
  const auto sync = emulation::make_gradient_sum(comm, step, gradients, setup, cores);
  comm->barrier();
  const TrainingFigures mine =
      emulation::run_training(comm, step, *sync, gradients, training, cores);
  return {.way = name,
          .explain = broadcast_text(*comm, sync->explain(), 0),
          .cores = broadcast_text(*comm, cores.explain(), 0),
          .ranks = gather_all(*comm, mine)};
}

void require_once(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::find(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i), words[i]) ==
        words.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    throw Error(ErrorKind::usage, fmt::format("'{}' is named twice", words[i]), "name it once");
  }
}

}  // namespace

TrainingStep make_step(const nets::Net& net, const SyncBenchOptions& options) {
  TrainingStep step = nets::make_step(net, options.batch, {.scale = options.time_scale});
  nets::shrink_gradients(step, options.shrink);
  return step;
}

void validate(const SyncBenchOptions& options) {
  require_once(options.nets);
  require_once(options.ways);
  for (const std::string& net : options.nets) nets::make_net(net);
  for (const std::string& way : options.ways) find_sync_way(way, emulation::emulated_ways());
  require_placement_policy(options.placement);
}

SyncResults run_sync_bench(const std::shared_ptr<Communicator>& comm,
                           const SyncBenchOptions& options) {
  SyncResults results{.options = options, .layout = find_layout(*comm)};
  const auto repetitions = static_cast<std::uint64_t>(options.repetitions);
  std::unique_ptr<Progress> progress;
  if (comm->rank() == 0) {
    progress = std::make_unique<Progress>("measuring",
                                          repetitions * options.ways.size() * options.nets.size());
  }
  for (const std::string& name : options.nets) {
    const nets::Net net = nets::make_net(name);
    const TrainingStep step = make_step(net, options);
    results.nets.push_back(describe(net, step, options.engine));
    for (std::uint64_t repetition = 0; repetition < repetitions; ++repetition) {
      std::vector<std::string> ways = options.ways;
      std::ranges::shuffle(ways, std::mt19937_64(options.seed + repetition));
      for (std::size_t turn = 0; turn < ways.size(); ++turn) {
        SyncRun run = run_way(comm, options, step, net.side, ways[turn]);
        run.net = name;
        run.repetition = static_cast<int>(repetition);
        run.turn = static_cast<int>(turn);
        results.runs.push_back(std::move(run));
        if (progress) progress->update(results.runs.size());
      }
    }
  }
  return results;
}

}  // namespace forebay::bench
