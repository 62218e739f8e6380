// How an emulated training sums its gradients: by the engine, or blocking at the end of the step as
// the simplest trainers do.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "forebay/placement.hpp"
#include "forebay/sync.hpp"
#include "nets/training_step.hpp"
#include "sync/gradient_sum.hpp"

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

/// The table of forebay/sync.hpp, without parameter servers.
std::vector<SyncWay> emulated_ways();

/// What was counted between two looks.
SyncStatistics since(const SyncStatistics& earlier, SyncStatistics later);

struct SyncSetup {
  SyncWay way;
  SyncOptions engine;    ///< strategy and placement are set
  bool capture = false;  ///< topo: from the first step, not from the graph
};

/// Of means. Collective. `step` and `gradients` outlive it.
std::unique_ptr<GradientSum> make_gradient_sum(const std::shared_ptr<Communicator>& comm,
                                               const nets::TrainingStep& step, Gradients& gradients,
                                               const SyncSetup& setup, const CorePlan& cores);

}  // namespace forebay::emulation
