// What a rank starts in one step, and in which order things became known to it: the raw material
// of a plan where nobody has given a graph.
//
//   start(a) start(b)  sees a done  start(c)  sees b done  start(d)     one step of one rank
//   \-- glimpse 0 --/              \- glimpse 1 -/         \- glimpse 2
//
// A tensor that was started after its rank had seen another one done may depend on it: c on a, d on
// a and b. More than that cannot be: whatever a tensor needs of others comes through their handles.
// Such edges never form a circle over ranks, for they follow the time at which tensors were done,
// which is when all ranks have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/messages.hpp"
#include "forebay/graph.hpp"
#include "sync/request.hpp"

namespace forebay {

/// One allreduce of a step.
struct StartedTensor {
  GraphNode tensor;
  std::uint64_t ordinal = 0;  ///< how often it was started, with this time, since the record began
  std::uint32_t glimpse = 0;  ///< how often others were newly seen done in this step before it
  std::uint32_t seen_at = 0;  ///< the glimpse that found it done; 0: none in this step
};

/// In the order of their start.
using StepRecord = std::vector<StartedTensor>;

auto sent(Is<StartedTensor> auto& one) {
  return std::tie(one.tensor.name, one.tensor.collective, one.tensor.type, one.tensor.reduction,
                  one.tensor.shape, one.ordinal, one.glimpse, one.seen_at);
}

/// Writes the record of one rank's steps. Of one thread at a time.
class StepRecorder {
 public:
  /// Only allreduces count. One that the step has already begins the next step.
  void start(const Request& request);
  /// Tells whether there was something in the step.
  bool end_step();
  /// Steps that have ended since the last call.
  std::vector<StepRecord> take_ended();

  bool in_step() const { return !step_.empty(); }
  std::uint64_t steps_ended() const { return steps_ended_; }
  /// How often a tensor was started.
  std::uint64_t started(const std::string& name) const;
  /// As if it had been started, outside of steps.
  void count(const std::string& name) { ++started_[name]; }
  void clear();

 private:
  void look_around();

  StepRecord step_;
  std::vector<std::pair<std::size_t, std::shared_ptr<SyncHandle::State>>> unseen_;
  std::uint32_t glimpse_ = 0;
  std::unordered_map<std::string, std::uint64_t> started_;
  std::unordered_map<std::string, std::uint64_t> in_step_;  ///< the last step with the name
  std::vector<StepRecord> ended_;
  std::uint64_t steps_ended_ = 0;
};

/// One step as all ranks have executed it.
struct MergedStep {
  Graph graph;
  std::map<std::string, std::uint64_t> ordinals;
  std::uint64_t digest = 0;  ///< of its tensors, whatever their order
};

/// Empty where ranks have started different tensors, or a tensor differently often. Tensors are
/// inserted in the order in which they were started, on average over ranks.
std::optional<MergedStep> merge(std::span<const StepRecord> by_rank);

}  // namespace forebay
