// forebay-bench sync: its flags, and how it is started.
#include "bench/command/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "bench/command/sync_bench.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "measure/comparison.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"

namespace forebay::bench {

nets::TrainingStep make_step(const nets::Net& net, const SyncBenchOptions& options) {
  nets::TrainingStep step = nets::make_step(net, options.batch, {.scale = options.time_scale});
  nets::shrink_gradients(step, options.shrink);
  return step;
}

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

/// Throws usage: a network or a way that does not exist, or is named twice.
void validate(const SyncBenchOptions& options) {
  require_once(options.nets);
  require_once(options.ways);
  for (const std::string& net : options.nets) nets::make_net(net);
  for (const std::string& way : options.ways) find_sync_way(way, emulation::emulated_ways());
  require_placement_policy(options.placement);
}

/// Collective. Throws as SyncEngine and run_training().
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

constexpr const char* kFooter = R"(
Networks: alexnet, googlenet, inception3, resnet18, resnet34, resnet50, resnet101, resnet152, vgg16.
Their kernels keep a virtual device busy, which takes no cores; gradients are summed for real.

  mpirun -n 4 forebay-bench sync --net googlenet --strategy negotiate,topo,scp-topo)";

std::string strategies_help() {
  std::string help =
      "\nStrategies; with scp- before it every component has its own cores, and scp is "
      "scp-negotiate:\n";
  for (const SyncWay& way : emulation::emulated_ways()) {
    help += fmt::format("  {:<10} {}\n", way.name, way.help);
  }
  return help;
}

/// All that ranks must have been told alike.
std::string settings_of(const SyncBenchOptions& options) {
  const emulation::TrainingOptions& training = options.training;
  return fmt::format(
      "{} {} scp={} {} batch={} scale={} shrink={} repetitions={} seed={} capture={} cycle={} "
      "gs={} "
      "fusion={} cache={} wire={} algorithm={} deterministic={} steps={} warmup={} dispatch={} "
      "queue={} input={} threads={} ahead={}",
      fmt::join(options.nets, ","), fmt::join(options.ways, ","), options.scp, options.placement,
      options.batch, options.time_scale, options.shrink, options.repetitions, options.seed,
      options.capture, options.engine.cycle.count(), options.engine.gs_every,
      options.engine.fusion_bytes.value_or(~std::uint64_t{0}), options.engine.cache_capacity,
      static_cast<int>(options.engine.wire), static_cast<int>(options.engine.algorithm),
      options.engine.deterministic, training.steps, training.warmup, training.dispatch.count(),
      training.queue, static_cast<int>(training.feed.input), training.feed.threads,
      training.feed.ahead);
}

void run(const std::shared_ptr<Communicator>& comm, const SyncBenchOptions& options) {
  collectively(*comm, [&] { validate(options); });
  require_agreement(*comm, settings_of(options), "the options of the benchmark");
  const SyncResults results = run_sync_bench(comm, options);
  collectively(*comm, [&] {
    if (comm->rank() != 0) return;
    const auto json = to_json(results);
    write_results(json, sync_table(json), options.json);
    flush_output();
  });
}

void add_time(CLI::App& command, const std::string& name, const std::string& help,
              const std::function<void(std::chrono::nanoseconds)>& set) {
  command
      .add_option_function<std::string>(
          "--" + name, [name, set](const std::string& text) { set(parse_duration(text, name)); },
          help)
      ->type_name("TIME");
}

void add_bytes(CLI::App& command, const std::string& name, const std::string& help,
               std::optional<std::uint64_t>& bytes) {
  command
      .add_option_function<std::string>(
          "--" + name, [name, &bytes](const std::string& text) { bytes = parse_bytes(text, name); },
          help)
      ->type_name("SIZE");
}

void add_training_flags(CLI::App& command, SyncBenchOptions& options) {
  emulation::TrainingOptions& training = options.training;
  command.add_option("--net", options.nets, "Networks (default resnet50)")->delimiter(',');
  command.add_option("--batch", options.batch, "Images of a rank and step (default 32)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--steps", training.steps, "Steps of a run that count (default 30)")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--warmup", training.warmup, "Steps before them (default 5)")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option("--input", training.feed.input,
                  "real: threads decode JPEGs (default); synthetic: they only write numbers; none")
      ->transform(named_choice<emulation::Input>({{"real", emulation::Input::real},
                                                  {"synthetic", emulation::Input::synthetic},
                                                  {"none", emulation::Input::none}}));
  command
      .add_option("--input-threads", training.feed.threads, "Input threads of a rank (default 2)")
      ->check(CLI::Range(1, 256));
  command.add_option("--ahead", training.feed.ahead, "Batches made ahead (default 2)")
      ->check(CLI::Range(1, 64));
  command
      .add_option("--time-scale", options.time_scale,
                  "Factor of the device's times; 1 (default): about a V100 in mixed precision")
      ->check(CLI::Range(0.001, 1000.0));
  add_time(command, "dispatch",
           "Computing of the scheduler for every operation (default 5us, as frameworks need)",
           [&training](std::chrono::nanoseconds time) { training.dispatch = time; });
  command.add_option("--queue", training.queue, "Kernels dispatched ahead (default 64)")
      ->check(CLI::Range(1, 100'000));
}

void add_engine_flags(CLI::App& command, SyncBenchOptions& options) {
  SyncOptions& engine = options.engine;
  command
      .add_option("--strategy", options.ways,
                  "Ways to sum gradients, the first being what others are compared with "
                  "(default negotiate,gs,nbcs,scp,topo,scp-topo)")
      ->delimiter(',');
  command.add_flag("--scp", options.scp, "Every component its own cores, with all strategies");
  command.add_option("--placement", options.placement,
                     "What scp means: partition (default), or lists such as "
                     "progress:0/compute:1/decode:2-3");
  add_time(command, "cycle", "Cycle time of negotiate, gs and nbcs (default 5ms)",
           [&engine](std::chrono::nanoseconds time) {
             engine.cycle = std::chrono::duration_cast<std::chrono::microseconds>(time);
           });
  command.add_option("--gs-every", engine.gs_every, "Cycles between agreements of gs (default 1)")
      ->check(CLI::Range(1, 1'000'000));
  add_bytes(command, "fusion",
            "Largest fused transfer (default 64MiB; topo: an eighth of all; 0: none are fused)",
            engine.fusion_bytes);
  command.add_option("--cache", engine.cache_capacity, "Response cache, in tensors (default 1024)");
  command
      .add_option("--algorithm", engine.algorithm,
                  "How fused buffers are summed: auto (default), mpi, direct, two-level, nccl")
      ->transform(named_choice<SyncAlgorithm>({{"auto", SyncAlgorithm::automatic},
                                               {"mpi", SyncAlgorithm::mpi},
                                               {"direct", SyncAlgorithm::direct},
                                               {"two-level", SyncAlgorithm::two_level},
                                               {"nccl", SyncAlgorithm::nccl}}));
  command.add_option("--wire", engine.wire, "What moves: as-is (default), float16, bfloat16")
      ->transform(named_choice<WireFormat>({{"as-is", WireFormat::as_is},
                                            {"float16", WireFormat::float16},
                                            {"bfloat16", WireFormat::bfloat16}}));
  command
      .add_option("--shrink", options.shrink,
                  "Sum one of N numbers of every gradient (default 1: all), where cores must do "
                  "what accelerators do for themselves")
      ->check(CLI::Range(1, 1'000'000));
  command.add_flag("--capture", options.capture,
                   "topo finds its order in the first step, not in the graph");
}

}  // namespace

void add_sync_command(CLI::App& app) {
  auto options = std::make_shared<SyncBenchOptions>();
  CLI::App* command = app.add_subcommand(
      "sync", "Gradient synchronization beside an emulated accelerator; run it under mpirun");
  add_training_flags(*command, *options);
  add_engine_flags(*command, *options);
  command->add_option("--repetitions", options->repetitions, "Runs of each (default 3)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--run-seed", options->seed, "Seed of the order of the runs (default 1)");
  add_former_name(*command, "--seed", "--run-seed");
  command->add_option("--json", options->json,
                      "Write every run with its figures to this file (-: standard output)");
  command->add_flag("--operations", options->operations,
                    "Print the operations of the networks as JSON, and run nothing");
  command->footer(strategies_help() + kFooter);
  command->callback([options] {
    if (options->operations) {
      validate(*options);
      return print_json(operations_json(*options));
    }
    run_on_ranks([&](const auto& comm) { run(comm, *options); });
  });
}

}  // namespace forebay::bench
