// Work that is due at a point in time, done by a few threads that sleep until then.
//
// Nobody spins, and no thread is held by work that is not due: thousands of delayed answers cost
// their memory alone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <stop_token>
#include <vector>

#include "core/placement.hpp"

namespace forebay::pfs {

/// Thread-safe; local.
class DeadlineQueue {
 public:
  /// Called once: at or after its time with true, or early with false because the queue was
  /// stopped. Must not throw.
  using Work = std::function<void(bool due)>;

  explicit DeadlineQueue(std::size_t threads);
  ~DeadlineQueue() { stop(); }
  DeadlineQueue(const DeadlineQueue&) = delete;
  DeadlineQueue& operator=(const DeadlineQueue&) = delete;

  /// `time_ns` as now_ns() counts. After stop() the work is called at once.
  void push(std::int64_t time_ns, Work work);
  /// Calls what still waits, and ends the threads. Idempotent.
  void stop();

 private:
  struct Item {
    std::int64_t time_ns;
    std::uint64_t number;  ///< same times: first come, first served
    Work work;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.number > b.number;
    }
  };

  void run(const std::stop_token& stop);
  Item take_first();

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::priority_queue<Item, std::vector<Item>, Later> items_;
  std::uint64_t pushed_ = 0;
  bool stopped_ = false;
  std::vector<HelperThread> threads_;  // last: they use all of the above
};

}  // namespace forebay::pfs
