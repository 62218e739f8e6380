#include "train/command_line.hpp"

#include <fmt/format.h>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "measure/comparison.hpp"
#include "program/flags.hpp"
#include "train/net_catalog.hpp"

namespace forebay {
namespace {

std::string nets_help() {
  std::string help = "Network:";
  for (const NetInfo& net : net_catalog()) help += fmt::format(" {} ({});", net.name, net.summary);
  help.pop_back();
  return help;
}

void add_network_flags(CLI::App& command, TrainFlags& flags) {
  command.add_option("--net", flags.run.net, nets_help());
  command.add_option("--classes", flags.classes,
                     "Classes that labels may name (default: 10 or 1000, as the network)");
  command.add_option("--mean", flags.mean, "Subtracted from every pixel (default: by network)");
  command.add_option("--scale", flags.scale, "Then multiplied by this (default: by network)");
  command.add_option("--seed", flags.run.seed,
                     "Seed of the parameters, of dropout and of the order (default 1)");
  command.add_option("--input", flags.run.input,
                     "Field to learn from (default: image, or x; the first of two)");
  command.add_option("--target", flags.run.target,
                     "Field to learn (default: label, or y; the second of two)");
}

void add_solver_flags(CLI::App& command, TrainFlags& flags) {
  const OptionGroup group(command, "Solver");
  command.add_option("--solver", flags.solver, "sgd (with momentum) or adam (default: by network)");
  command.add_option("--lr", flags.rate, "Learning rate (default: by network)");
  command.add_option("--lr-policy", flags.policy,
                     "fixed; step: lr * gamma^(i / step); inv: lr * (1 + gamma * i)^-power");
  command.add_option("--gamma", flags.run.solver.gamma, "See --lr-policy (default 0.1)");
  command.add_option("--power", flags.run.solver.power, "See --lr-policy (default 0.75)");
  command.add_option("--step", flags.run.solver.step, "Iterations; see --lr-policy");
  command
      .add_option("--lr-epochs", flags.run.solver.drops,
                  "Epochs after which the learning rate is multiplied by --gamma, like 50,75")
      ->delimiter(',')
      ->excludes("--lr-policy");
  command.add_option("--momentum", flags.momentum,
                     "Momentum; of adam: decay of the mean gradient (default 0.9)");
  command.add_option("--weight-decay", flags.weight_decay, "Weight decay (default: by network)");
}

void add_threads_flag(CLI::App& command, TrainFlags& flags) {
  command.add_option("--threads", flags.threads, "Threads that compute, a rank (default 1)");
}

void add_sync_flags(CLI::App& command, TrainFlags& flags) {
  const OptionGroup group(command, "Gradients");
  command.add_option("--sync", flags.sync,
                     "How gradients are summed: " + describe(flags.ways) + " (default: auto)");
  command
      .add_option("--fusion-bytes", flags.fusion,
                  "Largest transfer, put together from several gradients (default 64MiB; topo: an "
                  "eighth of all; 0: every gradient alone)")
      ->type_name("BYTES");
  command
      .add_option("--cycle", flags.cycle,
                  "Shortest time between two agreements of negotiate, gs and nbcs (default 5ms)")
      ->type_name("TIME");
  command.add_option(
      "--wire", flags.wire,
      "What gradients are rounded to while they move: none (default), float16, bfloat16");
  command.add_flag(
      "!--capture", flags.run.gradients.graph_given,
      "topo learns the order of transfers from the first iteration, not from the network");
  command.add_option(
      "--staleness", flags.run.gradients.staleness,
      "Iterations that a rank may be ahead of the slowest one, with servers (default 0: "
      "as with all others)");
  command.add_option("--servers", flags.run.gradients.servers,
                     "How many ranks serve parameters (default 0: one on each node)");
  command.add_option(
      "--proxies", flags.proxies,
      "Who sums gradients on their way to servers: numa (default: a rank of each NUMA "
      "node, then one of the node), node, none");
  command.add_option(
      "--accumulate", flags.run.accumulate,
      "Batches of the loader whose gradients are added up for one update (default 1)");
}

void add_growth_flags(CLI::App& command, TrainFlags& flags) {
  const OptionGroup group(command, "Batches that grow");
  command.add_option(
      "--grow-batch", flags.growth,
      "Double batch and learning rate when a test shows that an iteration has gained "
      "less accuracy than this, such as 1e-5");
  command.add_option("--grow-reused", flags.run.growth.reused,
                     "With --reuse: double batch and learning rate with each pass over the data in "
                     "memory in which at least this part is reused (pass p: p of p + 1), such as "
                     "0.5, and start small again when other data are read");
  command.add_option("--grow-limit", flags.run.growth.limit,
                     "Largest batch, times the first (default 16)");
  command.add_option("--grow-warmup", flags.run.growth.warmup,
                     "Iterations until the learning rate has doubled (default 100)");
}

void add_output_flags(CLI::App& command, TrainFlags& flags) {
  const OptionGroup group(command, "Output");
  command.add_option("--checkpoint", flags.run.checkpoint,
                     "Directory for checkpoints, one an epoch; created if missing");
  command.add_option("--checkpoint-every", flags.run.checkpoint_every,
                     "Checkpoint also after so many iterations");
  command.add_option("--keep-checkpoints", flags.run.keep_checkpoints,
                     "Keep so many of the latest checkpoints, and remove older ones (default 10; "
                     "0: keep all)");
  command.add_flag("--resume", flags.run.resume,
                   "Go on from the latest checkpoint in the --checkpoint directory");
  command.add_option("--log", flags.run.log,
                     "Write losses and results to this file, as JSON lines");
  command.add_option("--log-every", flags.run.log_every, "Iterations between lines (default 1)");
  command.add_option("--trace", flags.run.trace, "Write a timeline for Perfetto to this file");
  command.add_flag("--json", flags.json, "Print the result as one JSON object");
}

[[noreturn]] void throw_usage(const std::string& happened, const std::string& remedy) {
  throw Error(ErrorKind::usage, happened, remedy);
}

constexpr std::uint64_t kMostClasses = 1'000'000;
constexpr std::uint64_t kMostBatches = 1'000'000;  // of one iteration
constexpr int kMostThreads = 1024;

void check(const TrainFlags& flags) {
  const TrainOptions& run = flags.run;
  if (run.loader.batch == 0)
    throw_usage("--batch is missing", "give the samples of a global batch");
  if (run.resume && run.checkpoint.empty()) {
    throw_usage("--resume without --checkpoint", "name the directory that holds the checkpoint");
  }
  if (run.checkpoint_every > 0 && run.checkpoint.empty()) {
    throw_usage("--checkpoint-every without --checkpoint", "name a directory for the checkpoints");
  }
  if (run.log_every == 0) throw_usage("--log-every is 0", "give at least 1");
  if (run.accumulate == 0 || run.accumulate > kMostBatches) {
    throw_usage(fmt::format("--accumulate is {}", run.accumulate),
                fmt::format("give 1 to {} batches", kMostBatches));
  }
  if (flags.growth && run.test.empty()) {
    throw_usage("--grow-batch without --test", "name a data set whose results say when to grow");
  }
  if (flags.growth && find_net(run.net).task != Task::classify) {
    throw_usage(fmt::format("--grow-batch with {}, which has no accuracy", run.net),
                "leave it out, or choose a network that classifies");
  }
  if (flags.classes == 0) throw_usage("--classes is 0", "give at least 1");
  // Beyond these, LibTorch asks the system for more than any machine has, and says so in no words.
  if (flags.classes.value_or(1) > kMostClasses) {
    throw_usage(fmt::format("{} classes are too many", *flags.classes),
                fmt::format("the limit is {}", kMostClasses));
  }
  if (flags.threads < 1) throw_usage("--threads is below 1", "give at least 1");
  if (flags.threads > kMostThreads) {
    throw_usage(fmt::format("{} threads are too many", flags.threads),
                fmt::format("the limit is {}; one a core is enough", kMostThreads));
  }
}

void check_servers(const TrainFlags& flags, const GradientOptions& options) {
  const bool asked = options.staleness > 0 || options.servers != 0 || !flags.proxies.empty();
  if (!options.strategy.has_servers) {
    if (!asked) return;
    throw_usage(fmt::format("--staleness, --servers or --proxies with --sync {}", flags.sync),
                "leave them out, or choose --sync servers");
  }
  if (options.servers < 0) throw_usage("--servers is below 0", "give 0 or the number of ranks");
  if (options.wire != WireFormat::as_is) {
    throw_usage(fmt::format("--wire {} with --sync servers", flags.wire),
                "leave it out: servers get gradients as they are");
  }
}

GradientOptions gradient_options(const TrainFlags& flags) {
  GradientOptions options = flags.run.gradients;
  options.strategy = find_sync_way(flags.sync, flags.ways);
  options.wire = parse_wire_format(flags.wire);
  if (!flags.proxies.empty()) options.proxies = parse_proxy_level(flags.proxies);
  check_servers(flags, options);
  if (!flags.fusion.empty()) options.fusion_bytes = parse_bytes(flags.fusion, "fusion-bytes");
  if (!flags.cycle.empty()) {
    options.cycle =
        std::chrono::duration_cast<std::chrono::microseconds>(parse_duration(flags.cycle, "cycle"));
  }
  if (options.strategy.name == "blocking" && options.wire != WireFormat::as_is) {
    throw_usage(fmt::format("--wire {} with --sync {}", flags.wire, flags.sync),
                "choose another --sync: blocking sums gradients as they are");
  }
  return options;
}

}  // namespace

void add_train_flags(CLI::App& command, TrainFlags& flags) {
  command.add_option("dataset", flags.run.dataset, "Data set: DIR, FILE, or either with #name")
      ->required();
  command.add_option("--test", flags.run.test, "Data set to test on after each epoch");
  add_network_flags(command, flags);
  add_threads_flag(command, flags);
  command.add_flag("--measure-skew", flags.run.measure_skew,
                   "Tell waiting for slower ranks from the exchange of gradients, by a barrier");
  add_solver_flags(command, flags);
  add_sync_flags(command, flags);
  add_growth_flags(command, flags);
  add_output_flags(command, flags);
  // Networks take images, and --step is the solver's.
  add_loader_flags(command, flags.run.loader, {"shard", "length", "step"});
  add_order_flags(command, flags.run.loader, {"seed"});
}

TrainOptions complete(const TrainFlags& flags) {
  check(flags);
  const NetInfo& net = find_net(flags.run.net);
  TrainOptions run = flags.run;
  run.classes = flags.classes.value_or(net.classes);
  run.mean = flags.mean.value_or(net.mean);
  run.scale = flags.scale.value_or(net.scale);
  run.solver.kind = flags.solver.empty() ? net.solver : parse_solver_kind(flags.solver);
  run.solver.policy =
      run.solver.drops.empty() ? parse_rate_policy(flags.policy) : RatePolicy::epochs;
  run.solver.rate = flags.rate.value_or(net.rate);
  run.solver.momentum = flags.momentum.value_or(net.momentum);
  run.solver.weight_decay = flags.weight_decay.value_or(net.weight_decay);
  run.solver.validate();
  run.gradients = gradient_options(flags);
  run.growth.threshold = flags.growth;
  run.growth.validate();
  run.loader.seed = run.seed;
  if (run.loader.epochs == 0 && run.loader.iterations == 0) run.loader.epochs = 1;
  return run;
}

void add_ladder_flags(CLI::App& command, LadderFlags& flags) {
  command
      .add_option("dataset", flags.train.run.dataset, "Data set: DIR, FILE, or either with #name")
      ->required();
  command.add_option("--strategies", flags.strategies,
                     "What to compare: strategies, with knobs as in lmm+roots=2 (default: all)");
  command.add_option("--repetitions", flags.repetitions, "Trainings with each (default 3)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--run-seed", flags.run_seed, "Seed of the order of the runs (default 1)");
  add_former_name(command, "--order-seed", "--run-seed");
  command.add_flag("--cold", flags.cold, "Drop the page cache before each run; needs root");
  command.add_option("--json", flags.json,
                     "Write every run with its figures to this file (-: standard output)");
  add_network_flags(command, flags.train);
  add_threads_flag(command, flags.train);
  add_solver_flags(command, flags.train);
  add_sync_flags(command, flags.train);
  add_loader_flags(command, flags.train.run.loader, {"strategy", "shard", "length", "step"});
}

LadderOptions complete(const LadderFlags& flags) {
  const TrainOptions train = complete(flags.train);
  return {.train = train,
          .variants = bench::parse_variants(flags.strategies, train.loader),
          .repetitions = flags.repetitions,
          .seed = flags.run_seed,
          .cold = flags.cold,
          .threads = flags.train.threads};
}

}  // namespace forebay
