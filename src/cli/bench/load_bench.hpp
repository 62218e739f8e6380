// `forebay bench load`: what a training loop waits for, with computing emulated.
//
//   rank    | next() | computing | next() | computing | ...      a barrier, then all begin together
//             first               waited
//
// Each repetition runs every variant once, in an order of its own that depends on the seed alone.
// How Lee et al. measure exposed I/O (paper 003, IV) and Zhu et al. their pipeline (paper 004, IV):
// at the consumer, the first wait apart, which nothing can hide.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "forebay/statistics.hpp"
#include "measure/comparison.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

/// How computing is emulated.
enum class ComputeBy : std::uint8_t {
  sleep,  ///< as if an accelerator did it: the cores are free
  spin,   ///< on a core of the rank
};

struct LoadOptions {
  std::string dataset;
  std::vector<std::string> variants;  ///< see parse_variants; empty: the loader's options alone
  int repetitions = 3;
  std::uint64_t seed = 1;
  bool cold = false;
  std::chrono::nanoseconds compute{0};  ///< for every batch
  ComputeBy compute_by = ComputeBy::sleep;
  std::string json;  ///< file for the figures, "-": standard output, empty: none
  LoaderOptions loader;
};

/// Seconds of one rank.
struct LoadTimes {
  double total = 0;      ///< from the first call of next() to the end; opening aside
  double first = 0;      ///< waiting for the first batch
  double waited = 0;     ///< for the others
  double computing = 0;  ///< emulated, as it came out
};

struct LoadRun {
  std::string variant;
  int repetition = 0;
  int turn = 0;  ///< place in the order of its repetition
  std::string explain;
  std::vector<LoadTimes> times;  ///< by rank
  std::vector<LoaderStatistics> ranks;
};

/// The same on all ranks.
struct LoadResults {
  LoadOptions options;
  Layout layout;
  std::uint64_t entries = 0;
  std::vector<std::string> variants;
  std::vector<LoadRun> runs;
};

/// Collective. Throws as Loader.
LoadResults run_load_bench(const std::shared_ptr<Communicator>& comm, const LoadOptions& options);

// What `forebay bench load` found, for machines and for people.
//
//   seconds      a run, of the slowest rank      computing    of a rank, on average
//   first        waiting for the first batch     exposed      for all others; its share of seconds
//   read         of a rank's reading thread      rate         of all ranks together

/// Everything: options, every run with the figures of every rank, the summary.
nlohmann::ordered_json to_json(const LoadResults& results);

/// Tables. Takes what to_json() returned.
std::string load_table(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
