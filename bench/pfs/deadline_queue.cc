#include "pfs/deadline_queue.hpp"

#include <sys/prctl.h>

#include <chrono>

#include "core/clock.hpp"

namespace forebay::pfs {
namespace {

// The kernel may wake a sleeper 50 us late by default, to save power.
constexpr unsigned long kTimerSlackNs = 1'000;

std::chrono::steady_clock::time_point time_point(std::int64_t time_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns));
}

}  // namespace

DeadlineQueue::DeadlineQueue(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back("pfs-answer", Placement{}, [this](const std::stop_token& stop) {
      ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
      run(stop);
    });
  }
}

void DeadlineQueue::push(std::int64_t time_ns, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) {
      const bool first = items_.empty() || time_ns < items_.top().time_ns;
      items_.push({time_ns, pushed_++, std::move(work)});
      if (first) (led_ ? earlier_ : leaderless_).notify_one();
      return;
    }
  }
  work(false);
}

void DeadlineQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  threads_.clear();
  const std::lock_guard lock(mutex_);
  while (!items_.empty()) take_first().work(false);
}

DeadlineQueue::Item DeadlineQueue::take_first() {
  // top() is const because a changed key would break the order; the item leaves at once.
  Item item = std::move(const_cast<Item&>(items_.top()));
  items_.pop();
  return item;
}

void DeadlineQueue::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (leaderless_.wait(lock, stop, [this] { return !led_ && !items_.empty(); })) {
    led_ = true;
    sleep_until_due(lock, stop);
    led_ = false;
    if (stop.stop_requested()) return;
    Item item = take_first();
    if (!items_.empty()) leaderless_.notify_one();
    lock.unlock();
    item.work(true);
    lock.lock();
  }
}

void DeadlineQueue::sleep_until_due(std::unique_lock<std::mutex>& lock,
                                    const std::stop_token& stop) {
  for (std::int64_t next_ns = items_.top().time_ns; now_ns() < next_ns && !stop.stop_requested();
       next_ns = items_.top().time_ns) {
    earlier_.wait_until(lock, stop, time_point(next_ns),
                        [&] { return items_.top().time_ns < next_ns; });
  }
}

}  // namespace forebay::pfs
