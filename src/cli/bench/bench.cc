#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench/load_bench.hpp"
#include "cli/bench/read_bench.hpp"
#include "cli/commands.hpp"
#include "comm/values.hpp"
#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "measure/comparison.hpp"
#include "program/flags.hpp"
#include "program/output.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

using bench::Compute;
using bench::ComputeBy;
using bench::LoadOptions;
using bench::ReadBenchOptions;
using bench::ReadResults;

void run_read(const std::shared_ptr<Communicator>& comm, const ReadBenchOptions& options) {
  std::string strategies;
  for (const std::string& word : options.strategies) strategies += word + ",";
  require_agreement(*comm,
                    fmt::format("{} {} {} {} {}{}{}{}{} {} {}", strategies, options.repetitions,
                                options.seed, static_cast<int>(options.compute), options.cold,
                                options.plain, options.verify, options.block_sizes,
                                options.seek_only, options.loader.to_text(), options.dataset),
                    "the options of the benchmark");
  const ReadResults results = run_read_bench(comm, options);
  collectively(*comm, [&] {
    if (comm->rank() != 0) return;
    const auto json = to_json(results);
    bench::write_results(json, bench::to_text(json), options.json);
    flush_output();
  });
}

void run_load(const std::shared_ptr<Communicator>& comm, const LoadOptions& options) {
  std::string variants;
  for (const std::string& word : options.variants) variants += word + ",";
  require_agreement(
      *comm,
      fmt::format("{} {} {} {} {} {} {} {}", variants, options.repetitions, options.seed,
                  options.cold, options.compute.count(), static_cast<int>(options.compute_by),
                  options.loader.to_text(), options.dataset),
      "the options of the benchmark");
  const bench::LoadResults results = run_load_bench(comm, options);
  collectively(*comm, [&] {
    if (comm->rank() != 0) return;
    const auto json = to_json(results);
    bench::write_results(json, bench::load_table(json), options.json);
    flush_output();
  });
}

void complete(LoaderOptions& loader) {
  if (loader.batch == 0) {
    throw Error(ErrorKind::usage, "--batch is missing", "give the samples of a global batch");
  }
  if (loader.iterations == 0 && loader.epochs == 0) loader.epochs = 1;
  // What is not decoded may be anything.
  const bool any_value = loader.schema.empty() && !loader.decode;
  if (any_value && loader.codec == "auto") loader.codec = "bytes";
}

void add_read_flags(CLI::App& command, ReadBenchOptions& options) {
  command.add_option("dataset", options.dataset, "Data set: DIR, FILE, or either with #name")
      ->required();
  command.add_option("--strategies", options.strategies,
                     "What to compare: strategies, with knobs as in lmm+roots=2 (default: all that "
                     "can read the data set)");
  command.add_option("--repetitions", options.repetitions, "Runs of each (default 3)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--run-seed", options.seed, "Seed of the order of the runs (default 1)");
  add_former_name(command, "--seed", "--run-seed");
  command.add_flag("--cold", options.cold, "Drop the page cache before each run; needs root");
  command
      .add_option("--compute", options.compute,
                  "What is done with samples: none (default), sum of every byte")
      ->transform(named_choice<Compute>({{"none", Compute::none}, {"sum", Compute::sum}}));
  command.add_flag("--plain,!--no-plain", options.plain,
                   "Measure plain preads of the file too (default)");
  command.add_flag("--verify,!--no-verify", options.verify,
                   "Compare all data with what liblmdb delivers, aside of what is timed (default)");
  command.add_flag("--block-sizes", options.block_sizes,
                   "Also mmap against pread, one reader, blocks of 4 KiB to 1 GiB");
  command.add_flag("--seek-only", options.seek_only,
                   "Measure how long each rank seeks, and read nothing");
  command.add_option("--json", options.json,
                     "Write every run with its figures to this file (-: standard output)");
  add_loader_flags(command, options.loader, {"strategy", "shard"});
}

void add_read(CLI::App& bench) {
  auto options = std::make_shared<ReadBenchOptions>();
  CLI::App* command = bench.add_subcommand(
      "read", "How fast strategies deliver a data set, beside plain reads; run it under mpirun");
  add_read_flags(*command, *options);
  command->callback([options] {
    complete(options->loader);
    run_on_ranks([&](const auto& comm) { run_read(comm, *options); });
  });
}

void add_load_flags(CLI::App& command, LoadOptions& options) {
  command.add_option("dataset", options.dataset, "Data set, as for samples")->required();
  command.add_option(
      "--variants", options.variants,
      "What to compare: options joined by +, as in order=grouped+group=128+buffers=1 "
      "(default: the options given, alone)");
  command.add_option("--repetitions", options.repetitions, "Runs of each (default 3)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--run-seed", options.seed, "Seed of the order of the runs (default 1)");
  add_former_name(command, "--bench-seed", "--run-seed");
  command.add_flag("--cold", options.cold, "Drop the page cache before each run; needs root");
  command
      .add_option_function<std::string>(
          "--compute",
          [&options](const std::string& text) {
            options.compute = parse_duration(text, "compute");
          },
          "Time to compute for every batch, such as 20ms (default: none)")
      ->type_name("TIME");
  command
      .add_option("--compute-by", options.compute_by,
                  "sleep (default: the cores stay free), spin (on a core of the rank)")
      ->transform(
          named_choice<ComputeBy>({{"sleep", ComputeBy::sleep}, {"spin", ComputeBy::spin}}));
  command.add_option("--json", options.json,
                     "Write every run with its figures to this file (-: standard output)");
  add_order_flags(command, options.loader);
  add_loader_flags(command, options.loader, {"shard"});
}

void add_load(CLI::App& bench) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App* command = bench.add_subcommand(
      "load", "What a training loop would wait for, with computing emulated; run it under mpirun");
  add_load_flags(*command, *options);
  command->callback([options] {
    complete(options->loader);
    run_on_ranks([&](const auto& comm) { run_load(comm, *options); });
  });
}

void add_train(CLI::App& bench) {
  CLI::App* command =
      bench.add_subcommand("train", "The same strategies under a training; run it under mpirun");
  // Every argument belongs to the trainer, --help included.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] {
    std::vector<std::string> arguments = command->remaining();
    arguments.insert(arguments.begin(), "--bench");
    become_trainer(std::move(arguments));
  });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure: read, load, train");
  command->require_subcommand(1);
  add_read(*command);
  add_load(*command);
  add_train(*command);
}

}  // namespace forebay
