// Where requests go, from any thread: to the negotiation while there is no plan, into the slots of
// the plan while there is one, and on a list while ranks leave a plan together.
//
//   negotiating --follow()--> following --stop()--> stopped --negotiate()--> negotiating
//
// Callers that find a plan go through no lock. They look again after they have put their request:
// if the plan has ended meanwhile they take the request out again, unless the progress thread has.
// A plan's slots live on until no caller is under way that may have seen them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
  bool submit(std::shared_ptr<Request> request);
  bool end_step();

  // Progress thread.

  /// Takes back what is negotiated and puts it into the slots of `table`; tells what round 0 does
  /// without. Empty, and nothing has changed, where tensors are not within one step of each other.
  /// The result is the same on all ranks.
  std::optional<std::set<std::string>> follow(std::shared_ptr<const PlanTable> table,
                                              const PlanStart& start);
  void stop();
  /// While negotiating: what is not done is negotiated from the start, and the record begins anew.
  void start_anew();
  /// Negotiates `first`, then what has come since stop(). The record begins anew.
  void negotiate(Requests first);

  /// While following: set by follow().
  const std::shared_ptr<Slots>& slots() const { return slots_owner_; }
  /// While following: something has come that the plan does not know.
  bool has_strays() const { return has_strays_.load(); }
  /// The name of the first; whether there are only joins and closes.
  std::string describe_strays(bool& only_ends) const;
  /// While following: steps that were declared ended since the run's begin.
  std::uint64_t steps_ended() const { return steps_ended_.load(); }
  /// Counts up with every request: whether something comes at all.
  std::uint64_t submitted() const { return submitted_.load(); }
  std::vector<StepRecord> take_records();
  /// These were done without this rank, which has joined: they count as those that it has started,
  /// so that all ranks begin a plan in the middle of a step with the same tensors left.
  void count(const std::vector<std::string>& names);
  /// The join that was asked for last; null: none.
  std::shared_ptr<Request> join() const;
  void forget_join();
  /// Frees slots of earlier plans.
  void reclaim();

 private:
  enum class Mode : std::uint8_t { negotiating, following, stopped };

  bool put_in_slot(std::shared_ptr<Request>& request, bool& wake);
  bool submit_locked(std::shared_ptr<Request> request);
  Requests take_back();
  std::optional<std::set<std::string>> left_out(const PlanTable& table, const PlanStart& start,
                                                const Requests& outstanding, std::int64_t& ended);

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
