// What threads have cost: the part of ProcessUsage that is counted for one thread.
#pragma once

#include <cstdint>

#include "core/process_usage.hpp"

namespace forebay::emulation {

struct ThreadCost {
  double user_seconds = 0;
  double system_seconds = 0;
  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;

  ThreadCost& operator+=(const ThreadCost& other) {
    user_seconds += other.user_seconds;
    system_seconds += other.system_seconds;
    voluntary_switches += other.voluntary_switches;
    involuntary_switches += other.involuntary_switches;
    return *this;
  }
  ThreadCost operator-(const ThreadCost& earlier) const {
    return {user_seconds - earlier.user_seconds, system_seconds - earlier.system_seconds,
            voluntary_switches - earlier.voluntary_switches,
            involuntary_switches - earlier.involuntary_switches};
  }
};

/// Of the calling thread so far.
inline ThreadCost cost_of_this_thread() {
  const ProcessUsage usage = thread_usage();
  return {usage.user_seconds, usage.system_seconds, usage.voluntary_switches,
          usage.involuntary_switches};
}

}  // namespace forebay::emulation
