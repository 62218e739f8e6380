#include "sync/negotiation.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <array>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/placement.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// nbcs: between two looks for the other ranks.
constexpr microseconds kRestBetweenLooks{200};
/// How long a rank waits in the middle of a cycle: all others are in it too, or dead.
constexpr nanoseconds kPatience = std::chrono::minutes(10);
constexpr nanoseconds kRarestStallLook = std::chrono::seconds(1);

std::int64_t ns(nanoseconds duration) { return duration.count(); }

}  // namespace

Negotiation::Negotiation(const AgreementContext& context, CycleKind kind)
    : options_(context.options),
      kind_(kind),
      comm_(context.comm->split(0, context.comm->rank())),
      collectives_(comm_->nonblocking()),
      line_(context.line),
      statistics_(context.statistics),
      yields_(static_cast<std::size_t>(comm_->split_by_node()->size()) >= available_cores().size()),
      cache_(options_.cache_capacity),
      asked_(static_cast<std::size_t>(comm_->size())),
      pace_ns_(std::make_shared<std::int64_t>()) {
  comm_->carry_messages();
  if (comm_->rank() == 0) {
    coordinator_.emplace(comm_->size(), options_.stall_warning, options_.stall_limit);
  }
}

Agreement::Rest Negotiation::step() {
  if (closed_) return kAnyRest;
  const std::uint64_t cycle = cycle_;
  while (cycle == cycle_ && advance()) {
  }
  const std::int64_t now = now_ns();
  if (phase_ != Phase::rest) check_patience(now);
  return rest_of_phase(now);
}

bool Negotiation::advance() {
  switch (phase_) {
    case Phase::rest:
      return begin();
    case Phase::compare:
      return compare();
    case Phase::invalidate:
      return invalidate();
    case Phase::ask:
      return ask();
    case Phase::answer:
      return answer();
    case Phase::move:
      return move();
    case Phase::pace:
      return pace();
  }
  return false;
}

void Negotiation::enter(Phase phase) {
  phase_ = phase;
  phase_begin_ns_ = now_ns();
}

Agreement::Rest Negotiation::rest_of_phase(std::int64_t now) const {
  if (closed_) return kAnyRest;
  if (phase_ == Phase::rest) {
    const nanoseconds left(std::max<std::int64_t>(rest_end_ns_ - now, 0));
    return std::chrono::ceil<microseconds>(left);
  }
  if (kind_ == CycleKind::nbcs) {
    return phase_ == Phase::move ? kAnyRest : kRestBetweenLooks;
  }
  if (yields_) sched_yield();
  return Rest::zero();
}

void Negotiation::check_patience(std::int64_t now) const {
  const std::int64_t waited = now - phase_begin_ns_;
  if (waited < ns(kPatience)) return;
  throw Error(ErrorKind::communication,
              fmt::format("waited {} s for the other ranks in a cycle of synchronization",
                          duration_cast<std::chrono::seconds>(nanoseconds(waited)).count()),
              "look at the other ranks: one of them hangs or has ended");
}

bool Negotiation::begin() {
  const std::int64_t now = now_ns();
  if (now < rest_end_ns_) return false;
  note_oversleep(now);
  cycle_begin_ns_ = now;
  all_close_ = all_joined_ = false;
  agreed_.clear();
  take_requests();
  start_compare();
  enter(Phase::compare);
  return true;
}

void Negotiation::note_oversleep(std::int64_t now) {
  if (rest_end_ns_ == 0) return;
  constexpr std::array<std::int64_t, 5> kLimits{100'000, 300'000, 1'000'000, 3'000'000, 10'000'000};
  const auto* const class_of = std::ranges::upper_bound(kLimits, now - rest_end_ns_);
  ++statistics_.oversleep[class_of - kLimits.begin()];
}

bool Negotiation::move() {
  if (!line_.idle()) return false;
  const std::int64_t now = now_ns();
  look_for_stalls(now);
  const bool paces = kind_ == CycleKind::gs && (cycle_ + 1) % options_.gs_every == 0;
  const std::int64_t rest = cycle_begin_ns_ + ns(options_.cycle) - now;
  if (!paces || all_close_) {
    rest_for(rest);
    end();
    return true;
  }
  *pace_ns_ = std::max<std::int64_t>(rest, 0);
  operation_ =
      collectives_->all_reduce({pace_ns_, std::as_writable_bytes(std::span(pace_ns_.get(), 1))},
                               TensorType::int64, Combination::min);
  ++statistics_.negotiations;
  enter(Phase::pace);
  return true;
}

bool Negotiation::pace() {
  if (!operation_->done()) return false;
  operation_ = nullptr;
  rest_for(*pace_ns_);
  end();
  return true;
}

void Negotiation::rest_for(std::int64_t rest) { rest_end_ns_ = rest > 0 ? now_ns() + rest : 0; }

void Negotiation::end() {
  ++cycle_;
  ++statistics_.cycles;
  if (agreed_.empty()) ++statistics_.empty_cycles;
  enter(Phase::rest);
  if (all_joined_) {
    join_told_ = false;
    std::exchange(join_, nullptr)->finish();
  }
  if (all_close_) {
    closed_ = true;
    std::exchange(close_, nullptr)->finish();
  }
}

void Negotiation::look_for_stalls(std::int64_t now) {
  if (!coordinator_ || now < next_stall_look_ns_) return;
  nanoseconds every = std::min<nanoseconds>(options_.stall_warning / 10, kRarestStallLook);
  if (options_.stall_limit.count() > 0) {
    every = std::min<nanoseconds>(every, options_.stall_limit / 10);
  }
  next_stall_look_ns_ = now + ns(every);
  if (const auto report = coordinator_->look_for_stalls(now)) {
    log(LogLevel::warning, "{}", *report);
  }
  statistics_.stalls = coordinator_->stalls();
}

std::vector<std::shared_ptr<Request>> Negotiation::take_back() {
  take_requests();
  std::vector<std::shared_ptr<Request>> back;
  for (auto& [name, waiting] : waiting_) back.push_back(std::move(waiting.request));
  waiting_.clear();
  for (auto* const request : {&join_, &close_}) {
    if (*request != nullptr) back.push_back(std::exchange(*request, nullptr));
  }
  join_told_ = close_told_ = one_closes_ = false;
  if (coordinator_) coordinator_->clear();
  return back;
}

std::vector<std::string> Negotiation::take_without() { return std::exchange(without_, {}); }

void Negotiation::fail(const Error& error) {
  for (const auto& request : take_back()) request->fail(error);
}

std::string Negotiation::explain() const {
  const auto cycle_ms = static_cast<double>(options_.cycle.count()) / 1000;
  const std::string cycle =
      fmt::format("cycles of {} ms, {} known tensors at most", cycle_ms, options_.cache_capacity);
  switch (kind_) {
    case CycleKind::gs:
      return fmt::format(
          "{}, rests agreed every {}", cycle,
          options_.gs_every == 1 ? "cycle" : fmt::format("{} cycles", options_.gs_every));
    case CycleKind::nbcs:
      return fmt::format("{}, waits in rests of {} us", cycle, kRestBetweenLooks.count());
    default:
      return cycle;
  }
}

}  // namespace forebay
