// The flags of `forebay train` and `forebay bench train`, and what they mean for a run.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/ladder.hpp"
#include "train/trainer.hpp"

namespace forebay {

/// What was given on the command line. What was not given depends on the network.
struct TrainFlags {
  TrainOptions run;
  std::optional<std::uint64_t> classes;
  std::optional<float> mean;
  std::optional<float> scale;
  std::optional<double> rate;
  std::optional<double> momentum;
  std::optional<double> weight_decay;
  std::string solver;  ///< empty: by network
  std::string policy = "fixed";
  std::vector<SyncWay> ways = gradient_ways();  ///< what `sync` may name
  std::string sync = "auto";                    ///< parsed with the rest, for one-line errors,
  std::string wire = "none";
  std::string proxies;           ///< empty: by default
  std::string fusion;            ///< as are sizes
  std::string cycle;             ///< and times; empty: by default
  std::optional<double> growth;  ///< threshold
  int threads = 1;
  bool json = false;
};

/// `flags` must live as long as the parser.
void add_train_flags(CLI::App& command, TrainFlags& flags);

/// The options of the run, with what was not given filled in. Throws usage.
TrainOptions complete(const TrainFlags& flags);

struct LadderFlags {
  TrainFlags train;
  std::vector<std::string> strategies;  ///< empty: all
  int repetitions = 3;
  std::uint64_t run_seed = 1;
  bool cold = false;
  std::string json;  ///< file, "-": standard output, empty: none
};

/// `flags` must live as long as the parser.
void add_ladder_flags(CLI::App& command, LadderFlags& flags);

/// Throws usage.
LadderOptions complete(const LadderFlags& flags);

}  // namespace forebay
