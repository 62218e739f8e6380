#include "comm/waiting.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>

#include "forebay/error.hpp"

namespace forebay {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kYields = 32;
constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{1000};
constexpr milliseconds kInterruptEvery{20};

}  // namespace

Waiting::Waiting(const WaitPolicy& policy, std::string what)
    : policy_(policy),
      what_(std::move(what)),
      next_interrupt_(steady_clock::now() + kInterruptEvery) {}

void Waiting::step() {
  ++steps_;
  if (steps_ <= kYields) {
    sched_yield();
    return;
  }
  const int doublings = std::min(steps_ - kYields, 6);
  std::this_thread::sleep_for(std::min(kShortestSleep * (1 << doublings), kLongestSleep));
  check();
}

void Waiting::check() {
  const auto now = steady_clock::now();
  if (policy_.interrupt && now >= next_interrupt_) {
    policy_.interrupt();
    next_interrupt_ = now + kInterruptEvery;
  }
  waited_.step(now);
  if (waited_.total() < policy_.timeout) return;
  throw Error(ErrorKind::communication, fmt::format("waited {} for {}", policy_.timeout, what_),
              "look for a rank that hangs, or raise --timeout");
}

}  // namespace forebay
