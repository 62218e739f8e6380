// What tells orders apart in a loader: a FeedPlan says what an order asks of the stage and of those
// who fill it, and its feed takes the samples of one batch after the other out of there.
//
//   plan_strided   windows of C iterations, read by the roots of a node for all of its ranks
//   plan_drawn     new in every epoch; each rank reads what it delivers, buffer by buffer, or the
//                  roots of its node do
//   plan_shared    new in every epoch; ranks deliver what others have read, from the memory of all
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/non_copyable.hpp"
#include "loader/delivery.hpp"
#include "loader/opened.hpp"
#include "loader/state.hpp"
#include "loader/watch.hpp"

namespace forebay {

/// Batches that the consumer has not released, oldest first.
class HeldBatches {
 public:
  /// `first`: from where on the first batch needs what is published.
  explicit HeldBatches(std::uint64_t first) : next_from_(first) {}

  void add(const Delivery& delivery) {
    held_.push_back({delivery.iteration, delivery.from});
    next_from_ = delivery.next_from;
  }
  void release(std::uint64_t iteration) {
    std::erase_if(held_, [iteration](const Held& held) { return held.iteration == iteration; });
  }
  void drop_last() { held_.pop_back(); }
  bool empty() const { return held_.empty(); }
  /// What is published in the stage from here on is needed: by them, or by the next batch.
  std::uint64_t from() const { return from_or(next_from_); }
  /// The same where what the next batch needs is known better.
  std::uint64_t from_or(std::uint64_t next) const { return empty() ? next : held_.front().from; }

 private:
  struct Held {
    std::uint64_t iteration = 0;
    std::uint64_t from = 0;  ///< see Delivery
  };

  std::deque<Held> held_;
  std::uint64_t next_from_;
};

/// What take() throws when nothing is lost and batches have to be released first. Local.
class BatchesHeld : public Error {
 public:
  using Error::Error;
};

/// The order of a running loader, and where the run stands in it. One thread at a time.
class Feed : private NonCopyable {
 public:
  virtual ~Feed() = default;

  /// The pass of the next batch, where there is one; may go on to the next epoch.
  virtual std::optional<BatchPass> next() = 0;
  /// The next batch, whose pass next() has told. Waits for its data.
  virtual Delivery take(const BatchPass& pass) = 0;
  /// What it needs is published below here; take() does not wait when that is. Nothing where it
  /// cannot be told: then no batch is decoded before it is asked for. Where next() told of one.
  virtual std::optional<std::uint64_t> end_of_next() const { return std::nullopt; }
  /// What comes before `from` (as in Delivery) is held by no batch any more.
  virtual void let_go(std::uint64_t from) = 0;
  /// After all that was taken, also of batches that wait to be delivered.
  virtual RunState state() const = 0;
  /// Before close().
  virtual void add_to(LoaderStatistics& all) const = 0;
  /// Ends the helper threads and lets the other ranks go on without this one.
  virtual void close() {}
};

/// What a feed works with. References outlive it.
struct FeedSite {
  const Opened& opened;
  std::shared_ptr<Stage> stage;
  const Watch& watch;
  DataWait& data;
  const HeldBatches& held;
  Trace* trace;
};

struct FeedPlan {
  StageShape stage;
  std::uint64_t first = 0;  ///< what is published first, in the units in which the stage counts
  std::shared_ptr<ReadingList> list;  ///< of a root
  /// Batches may use what lies in a mapped file, where the stage has one user and they are decoded.
  bool in_place = false;
  std::shared_ptr<const RootMap> map;  ///< of the strided order
  std::uint64_t end = 0;               ///< likewise: iterations in all
  std::uint64_t turns = 0;             ///< about so many does a root take, where roots take turns
  std::string text;                    ///< the order in words, for explain()
  std::uint64_t epoch_iterations = 0;  ///< of an epoch that is not resumed
  std::uint64_t epochs_done = 0;
  /// Once the reading thread of this rank has started. Fails on all ranks together.
  std::function<std::unique_ptr<Feed>(const FeedSite&)> start;
};

/// The plan for the order of the options. Collective; all ranks fail together.
FeedPlan plan_feed(const Opened& opened);

FeedPlan plan_strided(const Opened& opened);
FeedPlan plan_drawn(const Opened& opened);
FeedPlan plan_shared(const Opened& opened);

}  // namespace forebay
