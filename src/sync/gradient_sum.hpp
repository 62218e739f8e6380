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
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  GradientSum() = default;
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

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

}  // namespace forebay
