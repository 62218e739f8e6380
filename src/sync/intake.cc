#include "sync/intake.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

namespace forebay {
namespace {

/// Counts a caller that may look at slots.
class Inside {
 public:
  explicit Inside(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Inside() { --count_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

bool Intake::submit(std::shared_ptr<Request> request) {
  ++submitted_;
  bool wake = false;
  if (put_in_slot(request, wake)) return wake;
  return submit_locked(std::move(request));
}

bool Intake::put_in_slot(std::shared_ptr<Request>& request, bool& wake) {
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

bool Intake::submit_locked(std::shared_ptr<Request> request) {
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

bool Intake::end_step() {
  if (slots_.load() != nullptr) {
    if (!step_has_some_.exchange(false)) return false;
    ++steps_ended_;
    return true;
  }
  const std::lock_guard lock(mutex_);
  return mode_ == Mode::negotiating && recorder_.end_step();
}

std::optional<std::set<std::string>> Intake::follow(std::shared_ptr<const PlanTable> table,
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

/// What was started and is not outstanding is done, which is the same on all ranks. So each tensor
/// is some steps beyond the one that was written down; those that are one step ahead of the others
/// are done in the step that is on its way.
std::optional<std::set<std::string>> Intake::left_out(const PlanTable& table,
                                                      const PlanStart& start,
                                                      const Requests& outstanding,
                                                      std::int64_t& ended) {
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

std::string Intake::describe_strays(bool& only_ends) const {
  const std::lock_guard lock(mutex_);
  only_ends = std::all_of(kept_.begin(), kept_.end(), [](const auto& request) {
    return request->operation == SyncOperation::join || request->operation == SyncOperation::close;
  });
  return kept_.empty() ? std::string() : kept_.front()->tensor.name;
}

std::vector<StepRecord> Intake::take_records() {
  const std::lock_guard lock(mutex_);
  return recorder_.take_ended();
}

void Intake::count(const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) recorder_.count(name);
}

std::shared_ptr<Request> Intake::join() const {
  const std::lock_guard lock(mutex_);
  return join_;
}

void Intake::forget_join() {
  const std::lock_guard lock(mutex_);
  join_ = nullptr;
}

void Intake::reclaim() {
  if (!retired_.empty() && inside_.load() == 0) retired_.clear();
}

/// Without the barriers that ranks have entered themselves.
Intake::Requests Intake::take_back() {
  Requests requests = negotiation_.take_back();
  std::erase_if(requests,
                [](const auto& one) { return one->tensor.name.starts_with(kPlanPrefix); });
  return requests;
}

void Intake::start_anew() {
  const std::lock_guard lock(mutex_);
  recorder_.clear();
  for (auto& request : take_back()) {
    recorder_.start(*request);
    negotiation_.submit(std::move(request));
  }
}

void Intake::stop() {
  const std::lock_guard lock(mutex_);
  mode_ = Mode::stopped;
  slots_ = nullptr;
}

void Intake::negotiate(Requests first) {
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

}  // namespace forebay
