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
      if (first) changed_.notify_one();
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
  while (!stop.stop_requested()) {
    if (items_.empty()) {
      changed_.wait(lock, stop, [this] { return !items_.empty(); });
      continue;
    }
    const std::int64_t time_ns = items_.top().time_ns;
    if (now_ns() < time_ns) {
      changed_.wait_until(lock, stop, time_point(time_ns),
                          [&] { return items_.empty() || items_.top().time_ns < time_ns; });
      continue;
    }
    Item item = take_first();
    // Others look after the next item while this one is worked on.
    if (!items_.empty()) changed_.notify_one();
    lock.unlock();
    item.work(true);
    lock.lock();
  }
}

}  // namespace forebay::pfs
