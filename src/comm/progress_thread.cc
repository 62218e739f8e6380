#include "comm/progress_thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "core/log.hpp"

namespace forebay {

ProgressThread::ProgressThread(std::chrono::microseconds idle_interval)
    : idle_interval_(idle_interval),
      thread_("fb-progress", Placement{}, [this](const std::stop_token& stop) { run(stop); }) {}

ProgressThread::Registration ProgressThread::add(Poller poller,
                                                 std::chrono::microseconds longest_rest) {
  const std::lock_guard lock(mutex_);
  pollers_.push_back({std::move(poller), longest_rest});
  return {this, std::prev(pollers_.end())};
}

bool ProgressThread::poll_all() {
  const std::lock_guard lock(mutex_);
  bool worked = false;
  for (auto& [poller, longest_rest] : pollers_) {
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

std::chrono::microseconds ProgressThread::longest_rest() {
  const std::lock_guard lock(mutex_);
  auto rest = idle_interval_;
  for (const auto& entry : pollers_) rest = std::min(rest, entry.longest_rest);
  return rest;
}

void ProgressThread::run(const std::stop_token& stop) {
  constexpr std::chrono::microseconds kShortest{50};
  constexpr int kGrowth = 4;
  ask_for_short_turns();
  auto rest = kShortest;
  std::mutex sleep_mutex;
  std::condition_variable sleeping;
  const std::stop_callback wake_up(stop, [&] {
    const std::lock_guard lock(sleep_mutex);
    sleeping.notify_all();
  });
  while (!stop.stop_requested()) {
    rest = poll_all() ? kShortest : std::min(rest + rest / kGrowth, longest_rest());
    std::unique_lock lock(sleep_mutex);
    sleeping.wait_for(lock, rest, [&] { return stop.stop_requested(); });
  }
}

ProgressThread::Registration::Registration(ProgressThread* thread, std::list<Entry>::iterator entry)
    : thread_(thread), entry_(entry) {}

ProgressThread::Registration::Registration(Registration&& other) noexcept
    : thread_(std::exchange(other.thread_, nullptr)), entry_(other.entry_) {}

ProgressThread::Registration& ProgressThread::Registration::operator=(
    Registration&& other) noexcept {
  std::swap(thread_, other.thread_);
  std::swap(entry_, other.entry_);
  return *this;
}

ProgressThread::Registration::~Registration() {
  if (thread_ == nullptr) return;
  const std::lock_guard lock(thread_->mutex_);
  thread_->pollers_.erase(entry_);
}

}  // namespace forebay
