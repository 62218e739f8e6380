// Waiting for something that only polling can tell, without burning a core.
//
// The first steps yield, the next ones sleep 20 us and double up to 1 ms: a wait of a few
// microseconds stays short, a long one costs less than 1 % of a core. Every wait ends: by its
// deadline, or by the interrupt that throws.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "core/clock.hpp"

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
  WaitedTime waited_;
  std::chrono::steady_clock::time_point next_interrupt_;
  int steps_ = 0;
};

// Waiting for bytes that this thread has to move itself.
//
// Most MPI libraries move what arrives only while they are asked, some kilobytes a time: a reader
// that sleeps between its questions is what the transfer then waits for. So each wait begins with
// questions that follow each other with no more than a yield, and each arrival begins a new wait.
// An arrival is all of a message, though, which may take a network ten milliseconds: rests grow
// with the time that nothing has come, but much slower than those of other waits.

/// As Waiting.
class BriskWaiting {
 public:
  BriskWaiting(const WaitPolicy& policy, std::string what) : waiting_(policy, std::move(what)) {}

  void step() {
    const auto quiet = std::chrono::steady_clock::now() - begin_;
    if (quiet < kBrisk) return std::this_thread::yield();
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(quiet / kShareOfQuietTime, kLongestRest));
    waiting_.check();
  }

 private:
  // Longer than one question takes that moves a whole message, of 1 MB at some GB/s.
  static constexpr std::chrono::microseconds kBrisk{500};
  // MPICH takes 64 KB a question out of a connection: at the end of a message of 1 MB that takes
  // 9 ms, over a link of 1 Gbit/s, questions are to be 0.5 ms apart at most.
  static constexpr int kShareOfQuietTime = 32;
  static constexpr std::chrono::milliseconds kLongestRest{1};

  Waiting waiting_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// How often to look at something that moves only while it is looked at, or that others move.
//
// A look that took long has moved something, so the next one follows at once. Otherwise the first
// looks follow each other without rest, and then rests last an eighth of the time since something
// has moved: a wait becomes at most that much longer, and a long one costs next to nothing.

class Pace {
 public:
  using Rest = std::chrono::microseconds;

  /// Begins a wait.
  void begin() { moved_ns_ = now_ns(); }

  /// After a look that began at `look_ns`.
  Rest rest_after(std::int64_t look_ns) {
    const std::int64_t now = now_ns();
    if (now - look_ns > kLongLookNs) moved_ns_ = now;
    const std::int64_t quiet_ns = now - moved_ns_;
    if (quiet_ns < kNoRestNs) return Rest(0);
    return std::clamp(Rest(quiet_ns / 8000), kShortest, kLongest);
  }

  /// Since something has moved.
  std::int64_t quiet_ns() const { return now_ns() - moved_ns_; }

 private:
  static constexpr std::int64_t kLongLookNs = 4'000;
  static constexpr std::int64_t kNoRestNs = 10'000;
  static constexpr Rest kShortest{20};
  static constexpr Rest kLongest{500};

  std::int64_t moved_ns_ = 0;
};

}  // namespace forebay
