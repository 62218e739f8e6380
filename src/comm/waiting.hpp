// Waiting for something that only polling can tell, without burning a core.
//
// The first steps yield, the next ones sleep 20 us and double up to 1 ms: a wait of a few
// microseconds stays short, a long one costs less than 1 % of a core. Every wait ends: by its
// deadline, or by the interrupt that throws.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace forebay {

/// How long to wait and what may end it early. Copied into each wait.
struct WaitPolicy {
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};
  std::function<void()> interrupt;  ///< may be empty; called every 20 ms or so
};

/// One wait. Not thread-safe; the policy must outlive it.
class Waiting {
 public:
  /// `what` completes "waited 600 s for ...".
  Waiting(const WaitPolicy& policy, std::string what);
  /// Rests a while. Throws communication past the deadline, and whatever the interrupt throws.
  void step();
  /// The same checks without the rest, for waits that sleep on something better.
  void check();

 private:
  const WaitPolicy& policy_;
  std::string what_;
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point next_interrupt_;
  int steps_ = 0;
};

}  // namespace forebay
