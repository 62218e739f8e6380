// Which read does a thread wait for in vain?
//
// A file server that hangs holds the thread that has asked it inside of the kernel, where nobody
// can wake it. But the kernel tells: /proc/self/task/N/syscall has the system call that a sleeping
// thread is in and its arguments, or says that it is in none, which is a page fault.
//
//   pread64(fd, bytes, count, offset)     the path of fd, and the offset
//   openat(folder, path), statx, ...      the path
//   a page fault                          the mapped bytes that it has noted before (note_mapped)
//
// So whatever reads is watched without doing anything for it, libraries too. A thread that is found
// in the same call again and again, and has not run in between, waits for storage. Waits for others
// (futexes, sockets, pipes, terminals) are not looked at, and neither is writing.
//
// Where the kernel does not tell (no /proc, another system), no read is ever found to wait in vain.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/non_copyable.hpp"

namespace forebay {

/// What a thread waits for.
struct UnansweredRead {
  std::string path;                     ///< empty: not known
  std::optional<std::uint64_t> offset;  ///< in the file, where the call says so
  const std::byte* mapped = nullptr;    ///< what was noted before a page fault
};

/// The threads of one piece of work. Shared by them and by whoever looks on. Thread-safe.
class ReadWatch : private NonCopyable {
 public:
  /// That of the calling thread; null: nobody watches it. Threads of a HelperThread have that of
  /// the thread that makes them.
  static std::shared_ptr<ReadWatch> of_this_thread();

  /// As long as it lives, the calling thread is one of `watch`, which may be null.
  class Member : private NonCopyable {
   public:
    explicit Member(std::shared_ptr<ReadWatch> watch);
    ~Member();

   private:
    std::shared_ptr<ReadWatch> before_;
  };

  /// A read for which a thread has waited during all looks of the last `limit`: so this is called
  /// again and again, by one thread. Time in which the process was stopped does not count.
  std::optional<UnansweredRead> look(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;

  struct Thread {
    int id = 0;
    const std::atomic<const std::byte*>* mapped = nullptr;
    std::string seen = {};  ///< its call, and how often it has run; empty: it was running
    Clock::duration waited{0};
  };

  std::mutex mutex_;
  std::list<Thread> threads_;
  WaitedTime looks_;
};

namespace detail {
inline constinit thread_local std::atomic<const std::byte*> mapped_here = nullptr;
}

/// The calling thread is about to use mapped bytes at `address`, which may be what it then waits
/// for.
inline void note_mapped(const std::byte* address) noexcept {
  detail::mapped_here.store(address, std::memory_order_relaxed);
}

}  // namespace forebay
