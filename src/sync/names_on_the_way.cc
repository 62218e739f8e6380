#include "sync/names_on_the_way.hpp"

#include <fmt/format.h>

#include <vector>

namespace forebay {

bool NamesOnTheWay::add(const std::string& name, const std::shared_ptr<SyncHandle::State>& state) {
  std::optional<Error> failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
    if (!failure) {
      if (!names_.emplace(name, state).second) {
        throw Error(ErrorKind::usage,
                    fmt::format("tensor '{}' is started again before it is done", name),
                    "wait for its handle first, or give it another name");
      }
      state->on_end = [self = shared_from_this(), name, then = std::move(state->on_end)] {
        self->remove(name);
        if (then) then();
      };
    }
  }
  if (failure) state->fail(*failure);
  return !failure;
}

void NamesOnTheWay::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_.erase(name);
  if (names_.empty()) none_.notify_all();
}

void NamesOnTheWay::fail_all(const Error& error) {
  std::vector<std::shared_ptr<SyncHandle::State>> states;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    for (const auto& [name, state] : names_) states.push_back(state.lock());
  }
  for (const auto& state : states) {
    if (state != nullptr) state->fail(error);
  }
}

bool NamesOnTheWay::wait_until_none(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return none_.wait_for(lock, limit, [this] { return names_.empty(); });
}

void NamesOnTheWay::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

std::size_t NamesOnTheWay::count() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

}  // namespace forebay
