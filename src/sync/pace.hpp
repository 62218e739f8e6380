// How often to look at something that moves only while it is looked at, or that others move.
//
// A look that took long has moved something, so the next one follows at once. Otherwise the first
// looks follow each other without rest, and then rests last an eighth of the time since something
// has moved: a wait becomes at most that much longer, and a long one costs next to nothing.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/clock.hpp"

namespace forebay {

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
