// An accelerator that does not exist: kernels follow each other on one time line, each for the time
// that it is said to take.
//
//   dispatched   k1 k2 k3      k4
//   time line    [ k1 ][ k2 ][k3] (idle) [ k4 ]
//
// No thread stands behind it: when a kernel ends is known as soon as it is dispatched, however late
// somebody looks. So it takes no core from those that are to be measured, and only what comes too
// late to it makes it idle.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace forebay::emulation {

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

}  // namespace forebay::emulation
