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
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "sync/plan_table.hpp"
#include "sync/request.hpp"

namespace forebay {

class Slots {
 public:
  using Place = PlanTable::Place;
  /// Slots of a buffer that are left out of one transfer: see PlanRun.
  using Left = std::vector<bool>;

  explicit Slots(std::shared_ptr<const PlanTable> table);
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

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

}  // namespace forebay
