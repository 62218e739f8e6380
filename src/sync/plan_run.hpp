// A plan at work: its table, the slots that callers fill, and the way of the progress thread
// through them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/messages.hpp"
#include "core/non_copyable.hpp"
#include "forebay/graph.hpp"
#include "forebay/sync_agreement.hpp"
#include "sync/request.hpp"

namespace forebay {

// A plan, prepared for many threads that look up where a request belongs. Immutable.

class PlanTable : private NonCopyable {
 public:
  struct Place {
    std::uint32_t buffer = 0;
    std::uint32_t slot = 0;
  };

  explicit PlanTable(TransferPlan plan);

  /// Empty for a request that is not exactly what the plan has under its name.
  std::optional<Place> find(const Request& request) const;
  const TransferPlan& plan() const { return plan_; }
  std::size_t tensors() const { return places_.size(); }
  /// Of its tensors, whatever their order: see MergedStep.
  std::uint64_t digest() const { return digest_; }

 private:
  TransferPlan plan_;
  std::unordered_map<std::string_view, Place> places_;  ///< names are those of plan_
  std::uint64_t digest_ = 0;
};

auto sent(Is<PlannedTensor> auto& one) {
  return std::tie(one.name, one.type, one.reduction, one.shape, one.depth);
}
auto sent(Is<TransferPlan> auto& plan) { return std::tie(plan.digest, plan.buffers); }

// One slot for each tensor of a plan: callers put their requests in, the progress thread takes them
// out buffer by buffer (paper 002 6.3.4). Nobody ever waits.
//
//   buffer 0  [a][b][c]   count 3: full, is taken
//   buffer 1  [d][ ]      count 1   <- awaited: who fills it wakes the progress thread
//   buffer 2  [ ][f][ ]   count 1   filled early; nobody is woken
//
// A slot holds one request at most: a name is started again only after its transfer is done, when
// its slot has long been emptied. So it does not matter to which step a request belongs.
//
// Count and `awaited` are both sequentially consistent: either the caller that fills a buffer sees
// that it is awaited, or the progress thread sees that it is full.

class Slots : private NonCopyable {
 public:
  using Place = PlanTable::Place;
  /// Slots of a buffer that are left out of one transfer: see PlanRun.
  using Left = std::vector<bool>;

  explicit Slots(std::shared_ptr<const PlanTable> table);
  ~Slots();

  const std::shared_ptr<const PlanTable>& table() const { return table_; }

  /// Any thread. Tells whether the progress thread waits for what is there now.
  bool put(Place place, std::shared_ptr<Request> request);
  /// Any thread: what it has put; null where the progress thread has taken it.
  std::shared_ptr<Request> withdraw(Place place);

  // Progress thread.

  /// `any_request`: it wants to be woken by each.
  void wait_for(std::uint32_t buffer, bool any_request);
  bool full(std::uint32_t buffer, const Left& left) const;
  bool has(Place place) const;
  /// By slot, null for those left out; all null where one was withdrawn in this moment.
  std::vector<std::shared_ptr<Request>> take(std::uint32_t buffer, const Left& left);
  std::vector<std::shared_ptr<Request>> take_all();
  /// Requests in slots.
  std::uint64_t filled() const { return filled_.load(); }

 private:
  using Slot = std::atomic<std::shared_ptr<Request>*>;
  struct Buffer {
    explicit Buffer(std::size_t size) : slots(size) {}
    std::vector<Slot> slots;
    std::atomic<std::uint32_t> count = 0;
  };
  static constexpr std::uint32_t kAnyBuffer = UINT32_MAX;

  std::shared_ptr<Request> empty(Place place);

  std::shared_ptr<const PlanTable> table_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::atomic<std::uint32_t> awaited_ = kAnyBuffer;
  std::atomic<std::uint64_t> filled_ = 0;
};

// The way of the progress thread through its plan: buffer after buffer, round after round.
//
//   round 0   [a b c] [d e]        round 1   [a b c] [d e]        ...
//              issue 0  issue 1               issue 2  issue 3
//
// A run may begin in the middle of a step, some tensors of which were summed before: they are left
// out of its first round, on all ranks alike. Buffers of which nothing is left are then no issue.
//
// Every rank issues the same transfers in the same order. That is all they have to agree on.

/// Of the progress thread.
class PlanRun {
 public:
  /// `left_out`: names that round 0 does without; not all of the plan's.
  PlanRun(std::shared_ptr<Slots> slots, const std::set<std::string>& left_out);

  Slots& slots() { return *slots_; }
  const PlanTable& table() const { return *slots_->table(); }

  /// Whether all tensors of the next buffer are there.
  bool ready() const;
  /// The next transfer, with what is in its slots; empty where a request is withdrawn just now.
  std::optional<Transfer> issue();
  /// The next transfer without requests: neutral elements instead of what this rank has.
  Transfer issue_neutral();

  std::uint64_t issued() const { return issued_; }
  /// Whole rounds that were issued.
  std::uint64_t rounds() const { return rounds_; }
  /// A tensor that the next buffer waits for; for messages.
  std::string missing() const;

 private:
  const Slots::Left& left() const;
  Transfer transfer_of(std::vector<std::shared_ptr<Request>> requests) const;
  bool nothing_left() const;
  void advance();
  void settle();

  std::shared_ptr<Slots> slots_;
  std::vector<Slots::Left> left_out_;  ///< of round 0, by buffer; empty: nothing
  std::uint32_t buffer_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t rounds_ = 0;
};

}  // namespace forebay
