// `forebay bench read`: every variant and the plain limit, interleaved.
//
// Each repetition runs all of them once, in an order of its own that depends on the seed alone: a
// drift of the machine meets all alike, and ratios compare runs of one repetition.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/block_sizes.hpp"
#include "cli/bench/plain_read.hpp"
#include "cli/bench/seek_only.hpp"
#include "cli/bench/strategy_run.hpp"
#include "cli/bench/verification.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

struct ReadOptions {
  std::string dataset;
  std::vector<std::string> strategies;  ///< see parse_variants; empty: all that can be opened
  int repetitions = 3;
  std::uint64_t seed = 1;
  bool cold = false;
  Compute compute = Compute::none;
  bool plain = true;
  bool verify = true;
  bool block_sizes = false;
  bool seek_only = false;
  std::string json;  ///< file for the figures, "-": standard output, empty: none
  LoaderOptions loader;
};

/// What the ratios need to know of the data set.
struct DataFacts {
  std::string file;
  std::uint64_t file_bytes = 0;
  std::uint64_t entries = 0;
  double stored_bytes = 0;  ///< of the file, pages and all, for one sample
};

/// One run of one variant or, without a variant, of plain reads.
struct MeasuredRun {
  int repetition = 0;
  int turn = 0;  ///< place in the order of its repetition
  std::optional<PlainRun> plain;
  std::string variant;
  StrategyRun strategy;
};

/// A variant that was left out, and why.
struct Skipped {
  std::string variant;
  std::string reason;
};

/// Filled alike on all ranks, `block_runs` on rank 0.
struct ReadResults {
  ReadOptions options;
  DataFacts data;
  Layout layout;
  std::vector<std::string> variants;
  std::vector<Skipped> skipped;
  std::vector<Verified> verified;
  std::vector<MeasuredRun> runs;
  std::vector<BlockRun> block_runs;
  std::vector<SeekRun> seek_runs;
};

/// Collective. Throws as Loader, and corrupt when variants deliver different data.
ReadResults run_read_bench(const std::shared_ptr<Communicator>& comm, const ReadOptions& options);

}  // namespace forebay::bench
