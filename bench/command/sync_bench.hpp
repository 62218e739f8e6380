// `forebay-bench sync`: what ways to sum gradients cost a training on an emulated accelerator.
//
// Every rank runs an emulated training (bench/command/emulation/emulated_training.hpp) of the same
// network. Each repetition runs every way once, in an order of its own that depends on the seed
// alone; one network after the other. A run is as fast as its slowest rank.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/command/emulation/emulated_training.hpp"
#include "measure/machine.hpp"

namespace forebay::bench {

struct SyncBenchOptions {
  std::vector<std::string> nets{"resnet50"};
  /// Of emulation::emulated_ways(); the first is what the others are compared with.
  std::vector<std::string> ways{"negotiate", "gs", "nbcs", "scp", "topo", "scp-topo"};
  bool scp = false;                     ///< every component its own cores, whatever the way
  std::string placement = "partition";  ///< what scp means: see forebay/placement.hpp
  std::uint64_t batch = 32;             ///< of each rank
  double time_scale = 1;                ///< of the device
  std::uint64_t shrink = 1;             ///< see nets::shrink_gradients()
  int repetitions = 3;
  std::uint64_t seed = 1;
  bool capture = false;  ///< topo: plans from its first step instead of from the graph
  SyncOptions engine;
  emulation::TrainingOptions training;  ///< its batch and side are set
  bool operations = false;              ///< print operations_json(), and run nothing
  std::string json;                     ///< file for the figures, "-": standard output, empty: none
};

struct SyncRun {
  std::string net = {};
  std::string way;
  int repetition = 0;
  int turn = 0;         ///< place in the order of its repetition
  std::string explain;  ///< of rank 0
  std::string cores;    ///< likewise
  std::vector<emulation::TrainingFigures> ranks;
};

/// What is known of a network before anything runs.
struct SyncNet {
  std::string name;
  std::uint64_t nodes = 0;
  std::uint64_t edges = 0;
  std::uint64_t tensors = 0;
  std::uint64_t gradient_bytes = 0;
  std::uint64_t transfers = 0;  ///< fused, as planned
  double plan_seconds = 0;      ///< the best of a few
  double device_seconds = 0;    ///< of one step
};

/// The same on all ranks.
struct SyncResults {
  SyncBenchOptions options;
  Layout layout;
  std::vector<SyncNet> nets = {};
  std::vector<SyncRun> runs = {};
};

/// The step of `net` that is run.
nets::TrainingStep make_step(const nets::Net& net, const SyncBenchOptions& options);

// What it found, for machines and for people. All times of a run are means over
// its ranks and steps, but its speed, which is that of the slowest rank.
//
//   images/s     of all ranks            gain         of it over the first way, medians
//   exposed      last gradient -> last mean of a step
//   idle         of the device in forward and backward: the scheduler came too late
//   input        the scheduler waited for a batch
//   waiting, copying, summing            the progress thread: figures 6.7 and 6.17 of paper 002
//   progress %   of a core that the progress thread took
//   evictions    involuntary context switches a second: scheduler, input threads, progress thread
//   messages     of a step, to agree on something
//   window %     of a step in which scheduler and input are at work before the first transfer

/// Everything: options, networks, every run with the figures of every rank, the summary.
nlohmann::ordered_json to_json(const SyncResults& results);

/// What is run, for libraries to be compared with: {"nets": [{"net", "batch", "side",
/// "operations": [{"kind", "takes_ns", "tensor"}, ...], "tensors": [{"name", "shape"}, ...]}, ...]}
nlohmann::ordered_json operations_json(const SyncBenchOptions& options);

/// Tables. Takes what to_json() returned.
std::string sync_table(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
