// Steady time, for measuring. Times of one node compare; times of different nodes do not.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/non_copyable.hpp"

namespace forebay {

inline std::int64_t now_ns() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count();
}

inline double now_seconds() { return static_cast<double>(now_ns()) * 1e-9; }

/// The time that a wait has taken, by somebody who looks up many times a second. A longer pause
/// counts as a second: the process was stopped, by a debugger or with its job, and what it waits
/// for had no chance either.
class WaitedTime {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WaitedTime(Clock::time_point begin = Clock::now()) : last_look_(begin) {}
  /// A look; what has passed since the one before.
  Clock::duration step(Clock::time_point now = Clock::now()) {
    const auto step = std::min<Clock::duration>(now - std::exchange(last_look_, now), kLongest);
    total_ += step;
    return step;
  }
  /// Until the last look.
  Clock::duration total() const { return total_; }

 private:
  static constexpr std::chrono::seconds kLongest{1};

  Clock::time_point last_look_;
  Clock::duration total_{0};
};

/// Adds the time of its scope to a total, also when the scope ends by an exception.
/// The total is not synchronized: one total belongs to one thread.
class Stopwatch : private NonCopyable {
 public:
  explicit Stopwatch(double& total_seconds) : total_seconds_(total_seconds) {}
  ~Stopwatch() { total_seconds_ += static_cast<double>(now_ns() - begin_ns_) * 1e-9; }

 private:
  double& total_seconds_;
  std::int64_t begin_ns_ = now_ns();
};

}  // namespace forebay
