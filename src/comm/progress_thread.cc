#include "comm/progress_thread.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/log.hpp"

namespace forebay {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr microseconds kShortestRest{50};
constexpr int kShareOfQuietTime = 5;        // a rest lasts a fifth of it
constexpr int kShareOfLongQuietTime = 100;  // whatever the longest rest
constexpr std::chrono::milliseconds kUsageEvery{10};
// A sleep from which no look at the usage would notice the difference.
constexpr std::chrono::milliseconds kLongRest{1};

}  // namespace

/// The mutex for everybody but the thread, which would otherwise take it back at once whenever it
/// makes turn after turn.
class ProgressThread::Access {
 public:
  explicit Access(ProgressThread& thread) {
    ++thread.wanting_access_;
    lock_ = std::unique_lock(thread.mutex_);
    --thread.wanting_access_;
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

ProgressThread::ProgressThread(microseconds idle_interval, const Placement& placement)
    : idle_interval_(idle_interval),
      last_work_(steady_clock::now()),
      placement_(placement),
      thread_("fb-progress", placement, [this](const std::stop_token& stop) { run(stop); }) {}

ProgressThread::Registration ProgressThread::add(Poller poller, microseconds longest_rest) {
  return add([this, poller = std::move(poller), longest_rest] {
    return rest_after(poller(), longest_rest);
  });
}

ProgressThread::Registration ProgressThread::add(RestingPoller poller) {
  Registration registration;
  {
    const Access access(*this);
    pollers_.push_back({std::move(poller)});
    registration = Registration(this, std::prev(pollers_.end()));
  }
  wake();  // it may sleep for longer than the new poller can bear
  return registration;
}

ProgressThread::Rest ProgressThread::rest_after(bool worked, Rest longest_rest) {
  const auto now = steady_clock::now();
  if (worked) last_work_ = now;
  const auto quiet = std::chrono::duration_cast<microseconds>(now - last_work_);
  return std::min({std::max(quiet / kShareOfQuietTime, kShortestRest),
                   std::max(longest_rest, quiet / kShareOfLongQuietTime),
                   std::max(idle_interval_, kShortestRest)});
}

/// Calls all pollers, and returns the shortest of the rests that they ask for.
ProgressThread::Rest ProgressThread::turn() {
  while (wanting_access_ > 0) sched_yield();
  const std::lock_guard lock(mutex_);
  Rest rest = kAnyRest;
  for (auto& [poller] : pollers_) {
    if (!poller) continue;
    try {
      rest = std::min(rest, poller());
    } catch (const std::exception& error) {
      log(LogLevel::error, "background progress stopped: {}", error.what());
      poller = nullptr;
    }
  }
  return rest;
}

void ProgressThread::wake() {
  if (state_.exchange(State::woken) != State::asleep) return;
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void ProgressThread::sleep(Rest rest) {
  auto expected = State::awake;
  if (rest > Rest::zero() && state_.compare_exchange_strong(expected, State::asleep)) {
    constexpr std::int64_t kSecond = 1'000'000;
    const timespec limit{.tv_sec = rest.count() / kSecond,
                         .tv_nsec = rest.count() % kSecond * 1000};
    // Interruption, a changed state and the end of the time all mean the same: another turn.
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(State::asleep),
            rest == kAnyRest ? nullptr : &limit, nullptr, 0);
  }
  // An exchange, not a store: what was written before wake() is to be seen by the next turn.
  state_.exchange(State::awake);
}

void ProgressThread::run(const std::stop_token& stop) {
  ask_for_short_turns();
  const std::stop_callback wake_up(stop, [this] { wake(); });
  while (!stop.stop_requested()) {
    place_if_asked();
    const Rest rest = turn();
    publish_usage(rest);
    sleep(rest);
  }
  place_if_asked();
}

bool ProgressThread::place(const Placement& placement) {
  if (placement == Placement{}) return true;
  const auto move = std::make_shared<Move>(Move{.placement = placement, .done = {}});
  auto done = move->done.get_future();
  {
    const std::lock_guard lock(facts_mutex_);
    if (placement_ != Placement{} || move_ != nullptr) return placement_ == placement;
    move_ = move;
    move_wanted_ = true;
  }
  wake();
  done.get();
  return true;
}

void ProgressThread::place_if_asked() {
  if (!move_wanted_.exchange(false)) return;
  const std::lock_guard lock(facts_mutex_);
  const auto move = std::exchange(move_, nullptr);
  try {
    place_this_thread(move->placement);
    placement_ = move->placement;
    move->done.set_value();
  } catch (...) {
    move->done.set_exception(std::current_exception());
  }
}

/// Also before every rest that may be long, so that nobody finds old figures.
void ProgressThread::publish_usage(Rest before_rest) {
  const auto now = steady_clock::now();
  if (before_rest < kLongRest && now - usage_published_ < kUsageEvery) return;
  usage_published_ = now;
  const ProcessUsage usage = thread_usage();
  const std::lock_guard lock(facts_mutex_);
  usage_ = usage;
}

ProcessUsage ProgressThread::usage() const {
  const std::lock_guard lock(facts_mutex_);
  return usage_;
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
  const Access access(*thread_);
  thread_->pollers_.erase(entry_);
}

std::shared_ptr<ProgressThread> progress_thread(const Placement& placement) {
  static std::mutex mutex;
  static std::weak_ptr<ProgressThread> shared;
  std::shared_ptr<ProgressThread> thread;
  {
    const std::lock_guard lock(mutex);
    thread = shared.lock();
    if (!thread) {
      thread = std::make_shared<ProgressThread>(std::chrono::milliseconds(50), placement);
      shared = thread;
    }
  }
  if (!thread->place(placement)) {
    log(LogLevel::info, "the progress thread runs on other cores already: {} is not followed",
        placement.to_text());
  }
  return thread;
}

}  // namespace forebay
