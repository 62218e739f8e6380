// What the operating system has spent on this process or thread so far.
//
// How to read the figures: voluntary switches count waits (for data, a lock, another rank);
// involuntary ones count evictions, so many of them mean more runnable threads than cores. Major
// faults are page faults that waited for the device. Private memory is what a memory limit bites
// on; mapped memory is page cache that the kernel can take back.
#pragma once

#include <cstdint>

namespace forebay {

struct ProcessUsage {
  std::uint64_t voluntary_switches = 0;
  std::uint64_t involuntary_switches = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  double user_seconds = 0;
  double system_seconds = 0;

  // Levels, not counts; zero in thread_usage(), since threads share their memory.
  std::uint64_t peak_resident_bytes = 0;  ///< the most that was resident since the process began
  std::uint64_t private_bytes = 0;        ///< resident now: heap, stacks, anonymous mappings
  std::uint64_t mapped_bytes = 0;         ///< resident now: mapped files and shared memory
};

/// Of all threads of this process. Local, thread-safe; reads /proc, so not for inner loops.
ProcessUsage process_usage();

/// Of the calling thread. One system call.
ProcessUsage thread_usage();

/// What was spent between two looks: counts and times are subtracted, levels are those of `later`.
ProcessUsage operator-(const ProcessUsage& later, const ProcessUsage& earlier);

}  // namespace forebay
