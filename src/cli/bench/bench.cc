#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>

#include "cli/bench/read_bench.hpp"
#include "cli/bench/read_results.hpp"
#include "cli/commands.hpp"
#include "cli/loader_flags.hpp"
#include "cli/mpi_main.hpp"
#include "cli/named_choice.hpp"
#include "cli/output.hpp"
#include "cli/trainer_program.hpp"
#include "comm/agreement.hpp"
#include "forebay/error.hpp"
#include "storage/atomic_file.hpp"

namespace forebay {
namespace {

using bench::Compute;
using bench::ReadOptions;
using bench::ReadResults;

void write(const ReadResults& results, const std::string& json_path) {
  const auto json = to_json(results);
  if (json_path == "-") return print_json(json);
  if (!json_path.empty()) {
    const std::string text =
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    AtomicFile file(json_path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  fmt::print("{}", bench::to_text(json));
}

int run_read(const std::shared_ptr<Communicator>& comm, const ReadOptions& options) {
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
    write(results, options.json);
    flush_output();
  });
  return 0;
}

void complete(ReadOptions& options) {
  if (options.loader.batch == 0) {
    throw Error(ErrorKind::usage, "--batch is missing", "give the samples of a global batch");
  }
  if (options.loader.iterations == 0 && options.loader.epochs == 0) options.loader.epochs = 1;
  // Nothing is decoded, so values may be anything.
  if (options.loader.schema.empty() && options.loader.codec == "auto") {
    options.loader.codec = "bytes";
  }
}

void add_read_flags(CLI::App& command, ReadOptions& options) {
  command.add_option("dataset", options.dataset, "Data set: DIR, FILE, or either with #name")
      ->required();
  command.add_option("--strategies", options.strategies,
                     "What to compare: strategies, with knobs as in lmm+roots=2 (default: all that "
                     "can read the data set)");
  command.add_option("--repetitions", options.repetitions, "Runs of each (default 3)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--seed", options.seed, "Seed of the order of the runs (default 1)");
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
  add_loader_flags(command, options.loader, {"strategy"});
}

void add_read(CLI::App& bench) {
  auto options = std::make_shared<ReadOptions>();
  CLI::App* command = bench.add_subcommand(
      "read", "How fast strategies deliver a data set, beside plain reads; run it under mpirun");
  add_read_flags(*command, *options);
  command->callback([options] {
    complete(*options);
    const int code = run_collective_main(
        [&](const std::shared_ptr<Communicator>& comm) { return run_read(comm, *options); });
    if (code != 0) throw CLI::RuntimeError(code);
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
  CLI::App* command = app.add_subcommand("bench", "Measure: read, train");
  command->require_subcommand(1);
  add_read(*command);
  add_train(*command);
}

}  // namespace forebay
