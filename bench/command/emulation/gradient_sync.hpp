// How an emulated training sums its gradients: by the engine, or blocking at the end of the step as
// the simplest trainers do.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/placement.hpp"
#include "forebay/sync.hpp"
#include "nets/training_step.hpp"

namespace forebay::emulation {

/// Gradients of all tensors, one behind the other. Each rank's are filled with a number of its own,
/// so that their mean tells whether they were summed.
class Gradients {
 public:
  explicit Gradients(const nets::TrainingStep& step);

  std::span<float> all() { return values_; }
  std::span<float> tensor(std::size_t number);
  /// To `rank` + 1.
  void fill(int rank);
  /// Throws corrupt when any number is not the mean over `ranks`.
  void require_mean(int ranks) const;

 private:
  std::vector<std::size_t> begins_;  // by tensor, and the end
  std::vector<float> values_;
};

/// What to sum with: "blocking", "negotiate", "gs", "nbcs", "topo"; with "scp-" before it every
/// component has its own cores; "scp" alone is scp-negotiate.
struct SyncWay {
  std::string name;  ///< as written
  bool blocking = false;
  SyncStrategy strategy = SyncStrategy::negotiate;
  bool placed = false;

  /// Throws usage.
  static SyncWay parse(std::string_view text);
};

/// All methods but statistics() are for one thread, the scheduler's.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  GradientSync() = default;
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  /// The gradient of `tensor` is ready.
  virtual void start(std::size_t tensor) = 0;
  /// Waits until the mean of `tensor` over all ranks is there. All tensors were started.
  virtual void finish(std::size_t tensor) = 0;
  virtual void end_step() = 0;
  virtual SyncStatistics statistics() const = 0;
  virtual std::string explain() const = 0;
};

/// What was counted between two looks.
SyncStatistics since(const SyncStatistics& earlier, SyncStatistics later);

struct SyncSetup {
  SyncWay way;
  SyncOptions engine;    ///< of strategies other than blocking; strategy and placement are set
  bool capture = false;  ///< topo: from the first step, not from the graph
};

/// Collective. `step` and `gradients` outlive it.
std::unique_ptr<GradientSync> make_gradient_sync(const std::shared_ptr<Communicator>& comm,
                                                 const nets::TrainingStep& step,
                                                 Gradients& gradients, const SyncSetup& setup,
                                                 const CorePlan& cores);

}  // namespace forebay::emulation
