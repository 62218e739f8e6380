// Wait and notify across processes: a futex in shared memory.
//
//   waiter                                   notifier
//   ------                                   --------
//   waiters += 1                             change the state that waiters look at
//   v = version                              version += 1
//   state as wished? -> done                 waiters > 0 -> wake all
//   sleep while version == v
//
// Whichever way the two interleave, the waiter sees either the new state or a version that differs
// from v, so no wake-up is lost. A waiter that is killed leaves `waiters` too high, which costs a
// system call per notify and nothing else. All bytes zero is a valid gate.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace forebay {

class Gate {
 public:
  /// Call after the state has changed.
  void notify_all();

  /// Sleeps until `ready()` holds or `limit` has passed; tells whether it holds.
  template <typename Ready>
  bool wait_for(std::chrono::nanoseconds limit, Ready ready) {
    if (ready()) return true;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    waiters_.fetch_add(1);
    bool holds = false;
    for (;;) {
      const std::uint32_t version = version_.load();
      holds = ready();
      const auto left = deadline - std::chrono::steady_clock::now();
      if (holds || left <= std::chrono::nanoseconds::zero()) break;
      sleep_while(version, left);
    }
    waiters_.fetch_sub(1);
    return holds;
  }

 private:
  void sleep_while(std::uint32_t version, std::chrono::nanoseconds limit);

  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint32_t> waiters_{0};
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace forebay
