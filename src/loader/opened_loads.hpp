// Which load of this rank is in which generation of the exchange, as its filling thread tells its
// fetching thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "loader/load_list.hpp"

namespace forebay {

struct OpenedLoad {
  std::uint64_t generation = 0;
  std::shared_ptr<const Load> load;  ///< empty where others have one and this rank has none
};

/// Thread-safe.
class OpenedLoads {
 public:
  void push(OpenedLoad load) {
    const std::lock_guard lock(mutex_);
    loads_.push_back(std::move(load));
    changed_.notify_all();
  }
  /// Nothing comes any more; what is there may still be taken.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// Nobody takes anything any more. Ends waits.
  void close() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    loads_.clear();
    changed_.notify_all();
  }
  /// The next one, when it is there; nothing at the end.
  std::optional<OpenedLoad> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !loads_.empty(); });
    if (loads_.empty()) return std::nullopt;
    OpenedLoad load = std::move(loads_.front());
    loads_.pop_front();
    return load;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::deque<OpenedLoad> loads_;
};

}  // namespace forebay
