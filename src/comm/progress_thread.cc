#include "comm/progress_thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "core/log.hpp"

namespace forebay {

ProgressThread::ProgressThread(std::chrono::microseconds idle_interval)
    : idle_interval_(idle_interval),
      thread_("fb-progress", Placement{}, [this](const std::stop_token& stop) { run(stop); }) {}

ProgressThread::Registration ProgressThread::add(Poller poller) {
  const std::lock_guard lock(mutex_);
  pollers_.push_back(std::move(poller));
  return {this, std::prev(pollers_.end())};
}

bool ProgressThread::poll_all() {
  const std::lock_guard lock(mutex_);
  bool worked = false;
  for (auto& poller : pollers_) {
    if (!poller) continue;
    try {
      worked = poller() || worked;
    } catch (const std::exception& error) {
      log(LogLevel::error, "background progress stopped: {}", error.what());
      poller = nullptr;
    }
  }
  return worked;
}

void ProgressThread::run(const std::stop_token& stop) {
  constexpr std::chrono::microseconds kShortest{50};
  auto rest = kShortest;
  std::mutex sleep_mutex;
  std::condition_variable_any sleeping;
  while (!stop.stop_requested()) {
    rest = poll_all() ? kShortest : std::min(rest * 2, idle_interval_);
    std::unique_lock lock(sleep_mutex);
    sleeping.wait_for(lock, stop, rest, [] { return false; });
  }
}

ProgressThread::Registration::Registration(ProgressThread* thread,
                                           std::list<Poller>::iterator poller)
    : thread_(thread), poller_(poller) {}

ProgressThread::Registration::Registration(Registration&& other) noexcept
    : thread_(std::exchange(other.thread_, nullptr)), poller_(other.poller_) {}

ProgressThread::Registration& ProgressThread::Registration::operator=(
    Registration&& other) noexcept {
  std::swap(thread_, other.thread_);
  std::swap(poller_, other.poller_);
  return *this;
}

ProgressThread::Registration::~Registration() {
  if (thread_ == nullptr) return;
  const std::lock_guard lock(thread_->mutex_);
  thread_->pollers_.erase(poller_);
}

}  // namespace forebay
