// The names that are on their way in an engine: each only once. Ending them is how a failure
// reaches every handle, wherever its request is.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "forebay/error.hpp"
#include "sync/request.hpp"

namespace forebay {

/// Thread-safe. Owned by shared pointers, as handles may outlive their engine.
class NamesOnTheWay : public std::enable_shared_from_this<NamesOnTheWay> {
 public:
  /// Takes the name until `state` ends. After fail_all(), the state is failed at once; returns
  /// whether it is to be submitted. Throws usage for a name that is on its way.
  bool add(const std::string& name, const std::shared_ptr<SyncHandle::State>& state);
  /// Fails all that are on their way, and all that come.
  void fail_all(const Error& error);
  /// Waits until nothing is on its way; tells whether that was so within `limit`.
  bool wait_until_none(std::chrono::milliseconds limit);
  /// Throws what fail_all() was given.
  void check() const;
  std::size_t count() const;

 private:
  void remove(const std::string& name);

  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::unordered_map<std::string, std::weak_ptr<SyncHandle::State>> names_;
  std::optional<Error> failure_;
};

}  // namespace forebay
