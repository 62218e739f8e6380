// Where requests go, from any thread: to the negotiation while there is no plan, into the slots of
// the plan while there is one, and on a list while ranks leave a plan together.
//
//   negotiating --follow()--> following --stop()--> stopped --negotiate()--> negotiating
//
// Callers that find a plan go through no lock. They look again after they have put their request:
// if the plan has ended meanwhile they take the request out again, unless the progress thread has.
// A plan's slots live on until no caller is under way that may have seen them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "sync/negotiation.hpp"
#include "sync/plan_run.hpp"
#include "sync/step_record.hpp"

namespace forebay {

/// Of names that only ranks themselves use, to change to a plan at the same time.
inline constexpr std::string_view kPlanPrefix = "forebay:plan";

/// Where in its plan a run begins: after what the negotiation has summed since `ordinals` (see
/// StepRecord) were written down, after `step` steps.
struct PlanStart {
  std::map<std::string, std::uint64_t> ordinals;  ///< empty: at the begin of a step
  std::uint64_t step = 0;
};

class Intake {
 public:
  using Requests = std::vector<std::shared_ptr<Request>>;

  /// `negotiation` outlives it.
  explicit Intake(Negotiation& negotiation) : negotiation_(negotiation) {}

  // Any thread; tell whether to wake the progress thread.
  bool submit(std::shared_ptr<Request> request) {
    ++submitted_;
    bool wake = false;
    if (put_in_slot(request, wake)) return wake;
    return submit_locked(std::move(request));
  }

  bool end_step() {
    if (slots_.load() != nullptr) {
      if (!step_has_some_.exchange(false)) return false;
      ++steps_ended_;
      return true;
    }
    const std::lock_guard lock(mutex_);
    return mode_ == Mode::negotiating && recorder_.end_step();
  }

  // Progress thread.

  /// Takes back what is negotiated and puts it into the slots of `table`; tells what round 0 does
  /// without. Empty, and nothing has changed, where tensors are not within one step of each other.
  /// The result is the same on all ranks.
  std::optional<std::set<std::string>> follow(std::shared_ptr<const PlanTable> table,
                                              const PlanStart& start) {
    const std::lock_guard lock(mutex_);
    Requests requests = take_back();
    std::int64_t ended = 0;
    auto without = left_out(*table, start, requests, ended);
    if (!without) {
      for (auto& request : requests) negotiation_.submit(std::move(request));
      return {};
    }
    if (slots_owner_ != nullptr) retired_.push_back(std::move(slots_owner_));
    slots_owner_ = std::make_shared<Slots>(std::move(table));
    steps_ended_ = static_cast<std::uint64_t>(std::max<std::int64_t>(ended, 0));
    step_has_some_ = !start.ordinals.empty() && recorder_.in_step();
    for (auto& request : requests) {
      if (const auto place = slots_owner_->table()->find(*request)) {
        slots_owner_->put(*place, std::move(request));
        step_has_some_ = true;
      } else {
        kept_.push_back(std::move(request));
      }
    }
    has_strays_ = !kept_.empty();
    mode_ = Mode::following;
    slots_ = slots_owner_.get();
    recorder_.clear();
    return without;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    mode_ = Mode::stopped;
    slots_ = nullptr;
  }

  /// While negotiating: what is not done is negotiated from the start, and the record begins anew.
  void start_anew() {
    const std::lock_guard lock(mutex_);
    recorder_.clear();
    for (auto& request : take_back()) {
      recorder_.start(*request);
      negotiation_.submit(std::move(request));
    }
  }

  /// Negotiates `first`, then what has come since stop(). The record begins anew.
  void negotiate(Requests first) {
    const std::lock_guard lock(mutex_);
    mode_ = Mode::negotiating;
    slots_ = nullptr;
    recorder_.clear();
    has_strays_ = false;
    if (slots_owner_ != nullptr) {
      for (auto& request : slots_owner_->take_all()) first.push_back(std::move(request));
      retired_.push_back(std::move(slots_owner_));
    }
    for (auto& request : kept_) first.push_back(std::move(request));
    kept_.clear();
    for (auto& request : first) {
      recorder_.start(*request);
      negotiation_.submit(std::move(request));
    }
  }

  /// While following: set by follow().
  const std::shared_ptr<Slots>& slots() const { return slots_owner_; }
  /// While following: something has come that the plan does not know.
  bool has_strays() const { return has_strays_.load(); }
  /// The name of the first; whether there are only joins and closes.
  std::string describe_strays(bool& only_ends) const {
    const std::lock_guard lock(mutex_);
    only_ends = std::all_of(kept_.begin(), kept_.end(), [](const auto& request) {
      return request->operation == SyncOperation::join ||
             request->operation == SyncOperation::close;
    });
    return kept_.empty() ? std::string() : kept_.front()->tensor.name;
  }

  /// While following: steps that were declared ended since the run's begin.
  std::uint64_t steps_ended() const { return steps_ended_.load(); }
  /// Counts up with every request: whether something comes at all.
  std::uint64_t submitted() const { return submitted_.load(); }
  std::vector<StepRecord> take_records() {
    const std::lock_guard lock(mutex_);
    return recorder_.take_ended();
  }

  /// These were done without this rank, which has joined: they count as those that it has started,
  /// so that all ranks begin a plan in the middle of a step with the same tensors left.
  void count(const std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names) recorder_.count(name);
  }

  /// The join that was asked for last; null: none.
  std::shared_ptr<Request> join() const {
    const std::lock_guard lock(mutex_);
    return join_;
  }

  void forget_join() {
    const std::lock_guard lock(mutex_);
    join_ = nullptr;
  }

  /// Frees slots of earlier plans.
  void reclaim() {
    if (!retired_.empty() && inside_.load() == 0) retired_.clear();
  }

 private:
  /// Counts a caller that may look at slots.
  class Inside : private NonCopyable {
   public:
    explicit Inside(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Inside() { --count_; }

   private:
    std::atomic<int>& count_;
  };

  enum class Mode : std::uint8_t { negotiating, following, stopped };

  bool put_in_slot(std::shared_ptr<Request>& request, bool& wake) {
    const Inside inside(inside_);
    Slots* const slots = slots_.load();
    if (slots == nullptr) return false;
    const auto place = slots->table()->find(*request);
    if (!place) return false;
    step_has_some_.store(true, std::memory_order_relaxed);
    wake = slots->put(*place, std::move(request));
    if (slots_.load() == slots) return true;
    request = slots->withdraw(*place);
    return request == nullptr;
  }

  bool submit_locked(std::shared_ptr<Request> request) {
    const std::lock_guard lock(mutex_);
    if (request->operation == SyncOperation::join) join_ = request;
    switch (mode_) {
      case Mode::negotiating:
        recorder_.start(*request);
        return negotiation_.submit(std::move(request));
      case Mode::following:
        // It has come under way to this plan.
        if (const auto place = slots_.load()->table()->find(*request)) {
          step_has_some_.store(true, std::memory_order_relaxed);
          return slots_.load()->put(*place, std::move(request));
        }
        kept_.push_back(std::move(request));
        has_strays_ = true;
        return true;
      case Mode::stopped:
        kept_.push_back(std::move(request));
        return false;
    }
    return false;
  }

  /// Without the barriers that ranks have entered themselves.
  Requests take_back() {
    Requests requests = negotiation_.take_back();
    std::erase_if(requests,
                  [](const auto& one) { return one->tensor.name.starts_with(kPlanPrefix); });
    return requests;
  }

  /// What was started and is not outstanding is done, which is the same on all ranks. So each
  /// tensor is some steps beyond the one that was written down; those that are one step ahead of
  /// the others are done in the step that is on its way.
  std::optional<std::set<std::string>> left_out(const PlanTable& table, const PlanStart& start,
                                                const Requests& outstanding, std::int64_t& ended) {
    std::set<std::string> ahead;
    if (start.ordinals.empty()) return ahead;
    std::unordered_set<std::string_view> on_way;
    for (const auto& request : outstanding) on_way.insert(request->tensor.name);
    std::map<std::string, std::int64_t> steps;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const auto& [name, ordinal] : start.ordinals) {
      const std::uint64_t done = recorder_.started(name) - (on_way.contains(name) ? 1 : 0);
      const auto beyond = static_cast<std::int64_t>(done - ordinal);
      steps[name] = beyond;
      least = std::min(least, beyond);
    }
    for (const auto& [name, beyond] : steps) {
      if (beyond > least + 1) return {};
      if (beyond == least + 1) ahead.insert(name);
    }
    // Round 0 is the step after the last that all tensors are done of.
    ended = static_cast<std::int64_t>(recorder_.steps_ended()) -
            (static_cast<std::int64_t>(start.step) + least);
    return table.tensors() == steps.size() ? std::optional(ahead) : std::nullopt;
  }

  Negotiation& negotiation_;
  std::atomic<Slots*> slots_ = nullptr;  ///< of the plan that is followed
  std::atomic<int> inside_ = 0;          ///< callers that may have seen it
  std::atomic<bool> has_strays_ = false;
  std::atomic<bool> step_has_some_ = false;
  std::atomic<std::uint64_t> steps_ended_ = 0;
  std::atomic<std::uint64_t> submitted_ = 0;

  mutable std::mutex mutex_;
  Mode mode_ = Mode::negotiating;
  StepRecorder recorder_;
  Requests kept_;  ///< strays of a plan; all that has come since stop()
  std::shared_ptr<Request> join_;

  // Progress thread.
  std::shared_ptr<Slots> slots_owner_;
  std::vector<std::shared_ptr<Slots>> retired_;
};

}  // namespace forebay
