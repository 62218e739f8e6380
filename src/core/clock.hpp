// Steady time, for measuring. Times of one node compare; times of different nodes do not.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/non_copyable.hpp"

namespace forebay {

inline std::int64_t now_ns() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count();
}

inline double now_seconds() { return static_cast<double>(now_ns()) * 1e-9; }

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
