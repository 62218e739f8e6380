// One operation on one tensor, from the thread that starts it to the one that carries it out.
//
//   caller: Request{...} -> Agreement::submit -> TransferLine -> finish() or fail() -> caller wakes
//
// The request itself is public: see forebay/sync_agreement.hpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/sync.hpp"
#include "forebay/sync_agreement.hpp"

namespace forebay {

/// What a handle's copies share. Thread-safe.
struct SyncHandle::State {
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Whether a caller has seen that it is done: what is started from then on may depend on it.
  bool seen() const { return seen_.load(std::memory_order_acquire); }

  /// The caller's. Called once, before on_end. Set before the request is submitted.
  SyncEnd before_end;
  /// Called once, just before it is done, by whoever ends it: see NamesOnTheWay. Set before the
  /// request is submitted.
  std::function<void()> on_end;

  /// Both take effect once: a later call changes nothing.
  void finish() { end(std::nullopt); }
  void fail(const Error& error) { end(error); }

  /// Ends with the result, the failure (thrown), or the limit (then false).
  bool wait(std::optional<std::chrono::milliseconds> limit);
  /// As SyncHandle::done().
  bool look();

  /// Of an allgather; written before finish().
  std::vector<std::byte> gathered;
  std::uint64_t gathered_rows = 0;

 private:
  void end(const std::optional<Error>& error);

  std::atomic<bool> ending_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<bool> seen_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
};

/// What must be equal on all ranks; compares all but the first extent of an allgather.
struct Signature {
  SyncOperation operation = SyncOperation::allreduce;
  TensorSpec tensor = {};
  Reduction reduction = Reduction::sum;
  int root = 0;

  explicit Signature(const Request& request);
  Signature() = default;
  bool operator==(const Signature& other) const;
};

/// "allreduce(sum) of float32 [3, 4]": what must be equal on all ranks, for messages.
std::string describe(const Signature& signature);
/// "[3, 4]".
std::string describe_shape(std::span<const std::uint64_t> shape);

// The names that are on their way in an engine: each only once. Ending them is how a failure
// reaches every handle, wherever its request is.

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
