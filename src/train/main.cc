// forebay-train: the program behind `forebay train` and, with --bench as its first word, behind
// `forebay bench train`.
#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "cli/mpi_main.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "storage/atomic_file.hpp"
#include "train/command_line.hpp"
#include "train/ladder.hpp"
#include "train/torch/torch_network.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

enum ExitCode : int { kFailed = 1, kUsage = 2 };

int train(const std::shared_ptr<Communicator>& comm, const TrainFlags& flags) {
  TrainOptions options = complete(flags);
  place_components(*comm, options, flags.threads);
  set_compute_threads(flags.threads);
  const auto show_epoch = [&](const EpochRecord& record) {
    if (flags.json) return;
    fmt::print("{}\n", to_line(record, options.loader.epochs));
    flush_output();
  };
  Trainer trainer(comm, options, make_torch_network, show_epoch);
  const TrainReport report = trainer.run();
  if (comm->rank() == 0) {
    if (flags.json) {
      fmt::print("{}\n", to_json(report));
    } else {
      fmt::print("\n{}", to_text(report));
    }
    flush_output();
  }
  return 0;
}

void write(const LadderResults& results, const std::string& json_path) {
  const std::string json = to_json(results) + "\n";
  if (json_path == "-") {
    fmt::print("{}", json);
    return flush_output();
  }
  if (!json_path.empty()) {
    AtomicFile file(json_path);
    file.write(std::as_bytes(std::span(json)));
    file.commit();
  }
  fmt::print("{}", to_text(results));
  flush_output();
}

int bench_train(const std::shared_ptr<Communicator>& comm, const LadderFlags& flags) {
  LadderOptions options = complete(flags);
  place_components(*comm, options.train, options.threads);
  for (bench::Variant& variant : options.variants) {
    variant.options.placement = options.train.loader.placement;
  }
  set_compute_threads(options.threads);
  Progress progress("training",
                    options.variants.size() * static_cast<std::uint64_t>(options.repetitions));
  const LadderResults results = run_ladder(comm, options, make_torch_network,
                                           [&](std::size_t done) { progress.update(done); });
  collectively(*comm, [&] {
    if (comm->rank() == 0) write(results, flags.json);
  });
  return 0;
}

/// Parses, and runs `body` on all ranks; the exit code.
int run(CLI::App& app, int argc, char** argv,
        const std::function<int(const std::shared_ptr<Communicator>&)>& body) {
  try {
    app.parse(argc, argv);
    return run_collective_main(body);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    // All ranks of a job fail here alike: one line is enough.
    if (launched_rank() == 0) {
      print_error(fmt::format("{}; see '{} --help'", error.what(), app.get_name()));
    }
    return kUsage;
  } catch (const Error& error) {
    if (launched_rank() == 0) print_error(error.what());
    return error.kind() == ErrorKind::usage ? kUsage : kFailed;
  }
}

int run_train(int argc, char** argv) {
  CLI::App app("Train a network on a data set of labelled images; run it under mpirun.",
               "forebay train");
  TrainFlags flags;
  add_train_flags(app, flags);
  return run(app, argc, argv, [&](const auto& comm) { return train(comm, flags); });
}

int run_bench(int argc, char** argv) {
  CLI::App app("Train with one strategy after the other and compare; run it under mpirun.",
               "forebay bench train");
  LadderFlags flags;
  add_ladder_flags(app, flags);
  return run(app, argc, argv, [&](const auto& comm) { return bench_train(comm, flags); });
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::set_log_hook(forebay::stderr_log_hook(), forebay::LogLevel::warning);
  const bool bench = argc > 1 && std::string_view(argv[1]) == "--bench";
  return bench ? forebay::run_bench(argc - 1, argv + 1) : forebay::run_train(argc, argv);
}
