// forebay-train: the program behind `forebay train`.
#include <fmt/format.h>

#include <cstdio>

#include "cli/mpi_main.hpp"
#include "cli/output.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "train/command_line.hpp"
#include "train/report.hpp"
#include "train/torch/torch_network.hpp"

namespace forebay {
namespace {

enum ExitCode : int { kFailed = 1, kUsage = 2 };

int train(const std::shared_ptr<Communicator>& comm, const TrainFlags& flags) {
  const TrainOptions options = complete(flags);
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

int run(int argc, char** argv) {
  CLI::App app("Train a network on a data set of labelled images; run it under mpirun.",
               "forebay train");
  TrainFlags flags;
  add_train_flags(app, flags);
  try {
    app.parse(argc, argv);
    return run_collective_main(
        [&](const std::shared_ptr<Communicator>& comm) { return train(comm, flags); });
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    // All ranks of a job fail here alike: one line is enough.
    if (launched_rank() == 0) {
      print_error(fmt::format("{}; see 'forebay train --help'", error.what()));
    }
    return kUsage;
  } catch (const Error& error) {
    if (launched_rank() == 0) print_error(error.what());
    return error.kind() == ErrorKind::usage ? kUsage : kFailed;
  }
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  forebay::set_log_hook(forebay::stderr_log_hook(), forebay::LogLevel::warning);
  return forebay::run(argc, argv);
}
