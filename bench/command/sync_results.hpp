// What `forebay-bench sync` found, for machines and for people. All times of a run are means over
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
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/command/sync_bench.hpp"

namespace forebay::bench {

/// Everything: options, networks, every run with the figures of every rank, the summary.
nlohmann::ordered_json to_json(const SyncResults& results);

/// What is run, for libraries to be compared with: {"nets": [{"net", "batch", "side",
/// "operations": [{"kind", "takes_ns", "tensor"}, ...], "tensors": [{"name", "shape"}, ...]}, ...]}
nlohmann::ordered_json operations_json(const SyncBenchOptions& options);

/// Tables. Takes what to_json() returned.
std::string sync_table(const nlohmann::ordered_json& results);

}  // namespace forebay::bench
