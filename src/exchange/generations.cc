#include "exchange/generations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace forebay {
namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{20};

}  // namespace

void Generations::open() {
  const std::lock_guard lock(mutex_);
  ++opened_;
  changed_.notify_all();
}

void Generations::release(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  released_ = std::max(released_, generation + 1);
  changed_.notify_all();
}

std::uint64_t Generations::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

bool Generations::is_released(std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  return generation < released_;
}

template <typename Ready>
void Generations::wait(const WaitPolicy& policy, const std::string& what, Ready ready) {
  Waiting waiting(policy, what);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kSlice, ready)) {
    lock.unlock();
    waiting.check();
    lock.lock();
  }
}

void Generations::wait_opened(std::uint64_t generation, const WaitPolicy& policy) {
  wait(policy, fmt::format("filling {} of the shares", generation),
       [&] { return generation < opened_; });
}

void Generations::wait_released(std::uint64_t generation, const WaitPolicy& policy) {
  wait(policy, fmt::format("the readers of filling {} of the shares", generation),
       [&] { return generation < released_; });
}

}  // namespace forebay
