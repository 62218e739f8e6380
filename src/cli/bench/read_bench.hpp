// `forebay bench read`: every variant and the plain limit, interleaved.
//
// Each repetition runs all of them once, in an order of its own that depends on the seed alone: a
// drift of the machine meets all alike, and ratios compare runs of one repetition.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/plain_read.hpp"
#include "cli/bench/strategy_run.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

struct ReadBenchOptions {
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
  ReadBenchOptions options;
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
ReadResults run_read_bench(const std::shared_ptr<Communicator>& comm,
                           const ReadBenchOptions& options);

// The figures of `forebay bench read`, for programs and for people.
//
// Ratios to the plain limit compare a run with the best plain run of the same repetition:
//
//   delivered_over_plain    bytes of values handed to the consumers, over bytes of the file that
//                           plain preads moved, both a second. The useful share of the file is its
//                           ceiling where everything has to be read.
//   file_bytes_over_plain   the same with the values' part of the file in place of the values:
//                           pages, headers and padding count as delivered. 1 means that reading is
//                           as fast as the file system.

/// Everything: options, data set, every run with the statistics of every rank, the summary.
nlohmann::ordered_json to_json(const ReadResults& results);

/// Tables, with what they mean. Takes what to_json() returned.
std::string to_text(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
