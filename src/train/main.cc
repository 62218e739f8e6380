// forebay-train: the program behind `forebay train` and, with --bench as its first word, behind
// `forebay bench train`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "program/output.hpp"
#include "program/run.hpp"
#include "train/command_line.hpp"
#include "train/ladder.hpp"
#include "train/torch/torch_network.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

void train(const std::shared_ptr<Communicator>& comm, const TrainFlags& flags) {
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
}

void bench_train(const std::shared_ptr<Communicator>& comm, const LadderFlags& flags) {
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
    if (comm->rank() != 0) return;
    bench::write_results(to_json(results), to_text(results), flags.json);
    flush_output();
  });
}

int run_train(int argc, char** argv) {
  CLI::App app("Train a network on a data set of labelled images; run it under mpirun.",
               "forebay train");
  TrainFlags flags;
  add_train_flags(app, flags);
  app.callback([&] { run_on_ranks([&](const auto& comm) { train(comm, flags); }); });
  return run_program(app, argc, argv);
}

int run_bench(int argc, char** argv) {
  CLI::App app("Train with one strategy after the other and compare; run it under mpirun.",
               "forebay bench train");
  LadderFlags flags;
  add_ladder_flags(app, flags);
  app.callback([&] { run_on_ranks([&](const auto& comm) { bench_train(comm, flags); }); });
  return run_program(app, argc, argv);
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  const bool bench = argc > 1 && std::string_view(argv[1]) == "--bench";
  return bench ? forebay::run_bench(argc - 1, argv + 1) : forebay::run_train(argc, argv);
}
