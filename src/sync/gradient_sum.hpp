// The gradients of a training step, summed over ranks: by an engine, each as soon as it is there,
// or
// (`blocking`) all by one all-reduce once the step has given them all.
//
//   start(2) ... start(1) ... start(0)   end_step()   wait(0), wait(1), wait(2)
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/communicator.hpp"
#include "forebay/graph.hpp"
#include "forebay/sync.hpp"

namespace forebay {

struct Gradient {
  TensorSpec tensor;  ///< of floats
  std::span<float> values;
};

struct GradientSumOptions {
  SyncOptions engine;                    ///< its strategy may be one without an engine
  Reduction reduction = Reduction::sum;  ///< or mean
  std::optional<GraphFile> graph = {};   ///< of a step, for strategies that take one
  std::span<float> initial = {};         ///< become those of rank 0
  /// Called ten times a second by whoever waits; may throw to end that.
  std::function<void()> interrupt = {};
};

/// Of one thread but for fail() and statistics().
class GradientSum : private NonCopyable {
 public:
  virtual ~GradientSum() = default;

  /// The gradient is final in this step. Never waits.
  virtual void start(std::size_t gradient) = 0;
  /// All were started.
  virtual void end_step() = 0;
  virtual bool done(std::size_t gradient) const = 0;
  /// Returns when the sum is there. Collective over all gradients of a step. Throws what another
  /// rank has failed with.
  virtual void wait(std::size_t gradient) = 0;
  /// Tells the other ranks, whose wait() then throws `error`. Local.
  virtual void fail(const Error& error) = 0;
  /// Collective. After it nothing is summed any more.
  virtual void close() = 0;
  virtual SyncStatistics statistics() const = 0;
  /// One line.
  virtual std::string explain() const = 0;
};

/// `all` holds the `gradients` and nothing else. Collective.
std::unique_ptr<GradientSum> make_gradient_sum(const std::shared_ptr<Communicator>& comm,
                                               std::vector<Gradient> gradients,
                                               std::span<float> all,
                                               const GradientSumOptions& options);

/// Calls visit("tensors", statistics.tensors ...) and so on, for every figure in the order in which
/// people read them; of several statistics for the figures of all.
template <typename Visit, typename... Statistics>
void for_each_figure(Visit visit, Statistics&&... statistics) {
  visit("tensors", statistics.tensors...);
  visit("transfers", statistics.transfers...);
  visit("bytes", statistics.bytes...);
  visit("wire_bytes", statistics.wire_bytes...);
  visit("largest_transfer", statistics.largest_transfer...);
  visit("cycles", statistics.cycles...);
  visit("empty_cycles", statistics.empty_cycles...);
  visit("negotiations", statistics.negotiations...);
  visit("cache_hits", statistics.cache_hits...);
  visit("cache_misses", statistics.cache_misses...);
  visit("plans", statistics.plans...);
  visit("fallbacks", statistics.fallbacks...);
  visit("stalls", statistics.stalls...);
  visit("wait_seconds", statistics.wait_seconds...);
  visit("copy_seconds", statistics.copy_seconds...);
  visit("transfer_seconds", statistics.transfer_seconds...);
  visit("skew_seconds", statistics.skew_seconds...);
  visit("oversleep", statistics.oversleep...);
  visit("thread_user_seconds", statistics.thread_user_seconds...);
  visit("thread_system_seconds", statistics.thread_system_seconds...);
  visit("thread_voluntary_switches", statistics.thread_voluntary_switches...);
  visit("thread_involuntary_switches", statistics.thread_involuntary_switches...);
}

}  // namespace forebay
