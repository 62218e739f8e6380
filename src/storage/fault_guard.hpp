// Faults inside file mappings become errors instead of the end of the process.
//
// An access to a mapped byte that the system cannot supply (the file was cut, the device failed)
// raises SIGBUS in the accessing thread. The first guard installs a process-wide handler that
//
//   1. looks the faulting address up in a fixed table of guarded mappings,
//   2. records the lowest faulting offset in the table,
//   3. maps anonymous zero pages over the mapping, from the faulting page to its end, and returns.
//
// The access is repeated, reads zeros and goes on: no stack is unwound, so locks, allocations and
// destructors of the interrupted code stay intact (a longjmp would break all three). The price is
// that readers see zeros until they look: whoever used mapped bytes asks fault() before trusting
// them. Step 3 replaces the rest of the mapping at once, because a file that failed is not trusted
// again, and because a page at a time could exhaust the number of mappings a process may have.
//
// Why the handler is safe to run at any instant, on any thread:
//   - it touches only lock-free atomics with static storage, and makes one system call (mmap);
//   - a table entry holds a mapping while its version number is odd, and is taken only when the
//     number is the same before and after reading it. An entry that changes meanwhile belongs to a
//     mapping that is being made or destroyed, which by contract nobody accesses: skipping is
//     right;
//   - the fault is recorded before the zeros appear, so nobody sees zeros that fault() denies;
//   - two threads that fault at once both map zeros over the same pages: the second changes
//   nothing.
// Addresses outside the table go to the handler that was there before, or to the default action.
//
// Limits. A thread that blocks SIGBUS cannot be helped: the kernel ends the process. A handler that
// is installed later must pass foreign faults on to ours. After fork() the child has its own copy
// of the table and the handler, and its own record of faults. A system call that is given such an
// address fails with EFAULT and raises no signal. A cut in the middle of a page does not fault
// inside that page: its tail reads as zeros, which only File::size() reveals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/non_copyable.hpp"

namespace forebay {

/// Guards one mapping, from the beginning of a file on, for as long as it lives. Construct it after
/// mmap and before the first access; destroy it after the last access and before munmap.
class FaultGuard : private NonCopyable {
 public:
  /// How many mappings a process can guard at once.
  static constexpr std::size_t kCapacity = 4096;

  /// `mapping` starts on a page boundary; `writable`: what is there after a fault is written to as
  /// well. Throws io when the table is full or the handler cannot be installed. Thread-safe.
  /// `path`: of the file that is mapped.
  explicit FaultGuard(std::span<const std::byte> mapping, std::string path = {},
                      bool writable = false);
  ~FaultGuard();

  struct Place {
    std::string path;
    std::uint64_t offset = 0;
  };
  /// What lies at `address`, if some guard has it. Thread-safe.
  static std::optional<Place> place_of(const std::byte* address);

  /// The lowest offset at which an access has faulted since construction. One atomic load.
  std::optional<std::uint64_t> fault() const noexcept;

 private:
  std::size_t entry_ = 0;
};

}  // namespace forebay
