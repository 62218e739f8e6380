// `forebay bench train`: the same training again and again, with one strategy after the other.
//
// Each repetition trains with every variant once, from the same parameters, in an order of its own
// that depends on the seed alone. Waiting for slower ranks is told from the exchange of gradients
// by a barrier before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/comparison.hpp"
#include "train/trainer.hpp"

namespace forebay {

struct LadderOptions {
  TrainOptions train;  ///< its loader's strategy does not count
  std::vector<bench::Variant> variants;
  int repetitions = 3;
  std::uint64_t seed = 1;  ///< of the order of the runs
  bool cold = false;       ///< drop the page cache before each run
  int threads = 1;         ///< that compute, a rank: as the caller has set it
};

struct LadderRun {
  std::string variant;
  int repetition = 0;
  TrainReport report;  ///< complete on rank 0 only
};

struct LadderResults {
  LadderOptions options;
  int ranks = 1;
  int nodes = 1;
  std::vector<LadderRun> runs;
};

/// Collective. `done` (optional) is told the number of finished runs, on rank 0. Throws as Trainer.
LadderResults run_ladder(const std::shared_ptr<Communicator>& comm, const LadderOptions& options,
                         const NetworkFactory& factory,
                         const std::function<void(std::size_t)>& done = {});

/// One JSON object: every run, and for each variant the median, least and most of its figures.
nlohmann::ordered_json to_json(const LadderResults& results);

/// A table: images a second, and seconds of reading, skew, computing and exchange, means of ranks.
std::string to_text(const LadderResults& results);

}  // namespace forebay
