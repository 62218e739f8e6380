// A training on an accelerator that does not exist: what the papers measured on Summit, for
// machines without accelerators (paper 002, 6.2 and 6.4).
//
//   input threads   decode ... -> batch
//   scheduler       batch -> dispatches every operation of the graph -> starts gradients as the
//                   device completes them -> waits for the means -> dispatches updates -> next step
//   device          kernels, one after the other, each for its time; computes nothing
//   progress        sums gradients: the engine's
//
// All of it but the device takes cores, as in a real training; images a second tell how well they
// get on with each other.
//
//   |<------------------------- step ------------------------->|
//   | input | forward | backward            | updates |
//           |<- susceptible ->|                                    scheduler and input at work, no
//                             ^ first gradient                     transfers yet (6.4.2)
//                                   |<- exposed ->|                last gradient ready -> last mean
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "bench/command/emulation/image_feed.hpp"
#include "core/process_usage.hpp"
#include "forebay/communicator.hpp"
#include "forebay/placement.hpp"
#include "forebay/sync.hpp"
#include "nets/training_step.hpp"
#include "sync/gradient_sum.hpp"

namespace forebay::emulation {

// An accelerator that does not exist: kernels follow each other on one time line, each for the time
// that it is said to take.
//
//   dispatched   k1 k2 k3      k4
//   time line    [ k1 ][ k2 ][k3] (idle) [ k4 ]
//
// No thread stands behind it: when a kernel ends is known as soon as it is dispatched, however late
// somebody looks. So it takes no core from those that are to be measured, and only what comes too
// late to it makes it idle.

/// One thread. Times are nanoseconds of the steady clock, and do not go back.
class VirtualDevice {
 public:
  /// At most `queue` kernels are dispatched and not complete: see full().
  explicit VirtualDevice(std::size_t queue) : queue_(queue) {}

  /// Work begins: what was idle before does not count.
  void begin(std::int64_t now);
  /// Returns when the kernel will be complete.
  std::int64_t dispatch(std::int64_t now, std::chrono::nanoseconds takes);
  /// Whether there is no room for another kernel, until first_end().
  bool full(std::int64_t now);
  std::int64_t first_end() const { return ends_.front(); }
  /// When all that was dispatched will be complete.
  std::int64_t end() const { return end_; }
  /// Without work since begin(), up to the last dispatch.
  std::chrono::nanoseconds idle() const { return std::chrono::nanoseconds(idle_); }

 private:
  std::size_t queue_;
  std::deque<std::int64_t> ends_;  // of kernels that may not be complete, ascending
  std::int64_t end_ = 0;
  std::int64_t idle_ = 0;
};

// How it sums its gradients: by the engine, or blocking at the end of the step as the simplest
// trainers do.

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

struct TrainingOptions {
  std::uint64_t steps = 30;
  std::uint64_t warmup = 5;                 ///< steps before them that do not count
  std::chrono::nanoseconds dispatch{5000};  ///< computing of the scheduler for every operation
  unsigned queue = 64;                      ///< kernels dispatched ahead of the device
  FeedOptions feed;                         ///< its placement is set
};

/// Of one rank; seconds and counts are sums over the steps that count.
struct TrainingFigures {
  double seconds = 0;
  double input_wait_seconds = 0;   ///< the scheduler waited for a batch
  double device_idle_seconds = 0;  ///< forward and backward: kernels came too late
  double exposed_seconds = 0;      ///< from the last gradient to the last mean
  double susceptible_seconds = 0;
  ProcessUsage scheduler;  ///< the thread that dispatches
  ProcessUsage input;      ///< all threads of it
  SyncStatistics sync;
};

/// Collective; every rank gets its own figures. Throws what a thread has failed with, on all ranks,
/// and corrupt when gradients are wrong.
TrainingFigures run_training(const std::shared_ptr<Communicator>& comm,
                             const nets::TrainingStep& step, GradientSum& sync,
                             Gradients& gradients, const TrainingOptions& options,
                             const CorePlan& cores);

}  // namespace forebay::emulation
