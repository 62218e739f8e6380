// Batches between the stage and the consumer: taken in order, decoded, handed on in order.
//
//   stage --take--> | n + 2: being decoded | n + 1: decoded | --pop--> the consumer computes with n
//
// Two threads take. The line's own does, as soon as a whole batch is in the stage and the line has
// room; it never waits for data with the lock, so it takes nothing that a release must come before.
// The consumer does, when the line is empty: it waits for data as it would without decoding.
// Batches in the line hold their buffers of the stage just as those that the consumer has: what the
// next batch needs is held anyway, so running ahead keeps no buffer from being filled.
//
// One lock protects the line and all that tells which batch is next.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "forebay/trace.hpp"
#include "loader/decode_pool.hpp"
#include "loader/delivery.hpp"
#include "loader/state.hpp"

namespace forebay {

/// Where the line takes batches from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Called with the lock.

  /// What must be published in the stage before the next batch can be taken without waiting: all
  /// below this. Nothing at the end of the run, and while that cannot be before a release.
  virtual std::optional<std::uint64_t> next_needs() = 0;
  virtual Delivery take_next() = 0;
  /// From which a run would go on with the next batch.
  virtual RunState state() const = 0;

  // Called with it or without.

  virtual bool published(std::uint64_t end) const = 0;
  /// Waits up to `limit`, or less. Throws cancelled when nobody will publish that any more.
  virtual void wait_published(std::uint64_t end, std::chrono::milliseconds limit) = 0;
};

/// Of one consumer and one thread of its own. Methods but stop() and busy_seconds() want the lock.
class DecodeLine : private NonCopyable {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Holds `ahead` batches of `source`, which must outlive it up to stop(). Takes nothing before
  /// start().
  DecodeLine(std::unique_ptr<DecodePool> pool, BatchSource& source, unsigned ahead, Trace* trace);
  ~DecodeLine() { stop(); }

  void start(const Placement& placement = {});
  /// Ends the thread, at most one sample later. Idempotent.
  void stop();

  Lock lock() { return Lock(mutex_); }
  bool empty() const { return batches_.empty(); }
  /// From which a run would go on with what the consumer gets next.
  RunState state() const;
  /// What the line's thread has met when it looked for the next batch: ends the run when the line
  /// is empty.
  const std::optional<Error>& failure() const { return failure_; }

  /// A batch that the consumer has taken.
  void add(Delivery delivery) { add(std::move(delivery), {}); }
  /// Waits until the first batch is decoded, up to `limit`; tells whether it is. Not when empty().
  bool wait_decoded(Lock& lock, std::chrono::milliseconds limit);
  /// Takes the first batch, which is decoded, out of the line. Throws what decoding it threw.
  Delivery pop();
  /// Forgets the last batch in the line; after stop().
  void drop_last() { batches_.pop_back(); }
  /// Buffers of the stage were released, so that there may be more to take.
  void look_again();

  const DecodePool& pool() const { return *pool_; }
  unsigned ahead() const { return ahead_; }

 private:
  struct Entry {
    Delivery delivery;
    RunState state;  ///< before it was taken
    bool decoded = false;
    std::optional<Error> error;
  };

  void live(const std::stop_token& stop);
  Entry* next_to_decode();
  void decode(Entry& entry, Lock& lock);
  bool may_take() const { return !at_end_ && !failure_ && batches_.size() < ahead_; }
  void take(Lock& lock);
  void wait_for_data(std::uint64_t end, Lock& lock);
  void add(Delivery delivery, RunState state);

  std::unique_ptr<DecodePool> pool_;
  BatchSource& source_;
  unsigned ahead_;
  Trace* trace_;

  std::mutex mutex_;
  std::condition_variable_any work_;  ///< for the thread
  std::condition_variable decoded_;   ///< for the consumer
  // All below is guarded by mutex_.
  std::deque<Entry> batches_;
  bool at_end_ = false;  ///< there is nothing to take before the consumer does something
  std::optional<Error> failure_;
  /// As it was before the thread began to look for the next batch, which may begin an epoch.
  std::optional<RunState> state_;

  HelperThread thread_;  // last: it ends before what it uses
};

}  // namespace forebay
