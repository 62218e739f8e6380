#include "sync/cycles.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/placement.hpp"
#include "sync/sync_options.hpp"

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

bool is_cached(SyncOperation operation) {
  return operation == SyncOperation::allreduce || operation == SyncOperation::barrier;
}

}  // namespace

Negotiation::Cycles::Cycles(const AgreementContext& context)
    : options_(context.options),
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

Agreement::Rest Negotiation::Cycles::step() {
  if (closed_) return kAnyRest;
  const std::uint64_t cycle = cycle_;
  while (cycle == cycle_ && advance()) {
  }
  const std::int64_t now = now_ns();
  if (phase_ != Phase::rest) check_patience(now);
  return rest_of_phase(now);
}

bool Negotiation::Cycles::advance() {
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

void Negotiation::Cycles::enter(Phase phase) {
  phase_ = phase;
  phase_begin_ns_ = now_ns();
}

Agreement::Rest Negotiation::Cycles::rest_of_phase(std::int64_t now) const {
  if (closed_) return kAnyRest;
  if (phase_ == Phase::rest) {
    const nanoseconds left(std::max<std::int64_t>(rest_end_ns_ - now, 0));
    return std::chrono::ceil<microseconds>(left);
  }
  if (options_.strategy == SyncStrategy::nbcs) {
    return phase_ == Phase::move ? kAnyRest : kRestBetweenLooks;
  }
  if (yields_) sched_yield();
  return Rest::zero();
}

void Negotiation::Cycles::check_patience(std::int64_t now) const {
  const std::int64_t waited = now - phase_begin_ns_;
  if (waited < ns(kPatience)) return;
  throw Error(ErrorKind::communication,
              fmt::format("waited {} s for the other ranks in a cycle of synchronization",
                          duration_cast<std::chrono::seconds>(nanoseconds(waited)).count()),
              "look at the other ranks: one of them hangs or has ended");
}

bool Negotiation::Cycles::begin() {
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

void Negotiation::Cycles::note_oversleep(std::int64_t now) {
  if (rest_end_ns_ == 0) return;
  constexpr std::array<std::int64_t, 5> kLimits{100'000, 300'000, 1'000'000, 3'000'000, 10'000'000};
  const auto* const class_of = std::ranges::upper_bound(kLimits, now - rest_end_ns_);
  ++statistics_.oversleep[class_of - kLimits.begin()];
}

void Negotiation::Cycles::take_requests() {
  for (auto& request : queue.take()) {
    if (request->operation == SyncOperation::join) {
      join_ = std::move(request);
    } else if (request->operation == SyncOperation::close) {
      close_ = std::move(request);
    } else {
      Waiting waiting{.request = request, .signature = Signature(*request)};
      waiting_.emplace(request->tensor.name, std::move(waiting));
    }
  }
}

void Negotiation::Cycles::start_compare() {
  const std::int64_t now = now_ns();
  std::uint64_t facts = ReadyBits::nothing_new | ReadyBits::nothing_invalid;
  if (close_ != nullptr) facts |= ReadyBits::closing;
  ready_ = ReadyBits(cache_.slots(), facts, join_told_);
  invalid_ = ReadyBits(cache_.slots(), 0, false);
  if (join_ != nullptr && !join_told_) ready_.clear_fact(ReadyBits::nothing_new);
  had_something_ = !waiting_.empty();
  for (auto& [name, waiting] : waiting_) look_up(waiting, now);
  operation_ = collectives_->all_reduce(ready_.bytes(), TensorType::int64, Combination::bit_and);
  ++statistics_.negotiations;
}

void Negotiation::Cycles::look_up(Waiting& waiting, std::int64_t now) {
  if (waiting.told) return;
  const auto slot = cache_.find(waiting.signature.tensor.name);
  const bool is_known = slot && *cache_.at(*slot) == waiting.signature;
  if (!std::exchange(waiting.looked, true)) {
    ++(is_known ? statistics_.cache_hits : statistics_.cache_misses);
  }
  if (is_known && !waits_too_long(waiting, now)) {
    ready_.set(*slot);
    return;
  }
  ready_.clear_fact(ReadyBits::nothing_new);
  if (!slot) return;
  ready_.clear_fact(ReadyBits::nothing_invalid);
  ready_.clear(*slot);
  invalid_.set(*slot);
}

/// Then the coordinator shall see who is missing.
bool Negotiation::Cycles::waits_too_long(const Waiting& waiting, std::int64_t now) const {
  nanoseconds limit = options_.stall_warning;
  if (options_.stall_limit.count() > 0) limit = std::min<nanoseconds>(limit, options_.stall_limit);
  return now - waiting.request->submitted_ns >= ns(limit);
}

bool Negotiation::Cycles::compare() {
  if (!operation_->done()) return false;
  all_close_ = ready_.fact(ReadyBits::closing);
  if (ready_.fact(ReadyBits::nothing_invalid)) {
    agree_on_known();
    return true;
  }
  operation_ = collectives_->all_reduce(invalid_.bytes(), TensorType::int64, Combination::bit_or);
  ++statistics_.negotiations;
  enter(Phase::invalidate);
  return true;
}

bool Negotiation::Cycles::invalidate() {
  if (!operation_->done()) return false;
  for (const auto slot : invalid_.set_slots()) {
    ready_.clear(slot);
    cache_.erase(slot);
  }
  agree_on_known();
  return true;
}

void Negotiation::Cycles::agree_on_known() {
  operation_ = nullptr;
  for (const auto slot : ready_.set_slots()) {
    if (!cache_.at(slot)) continue;  // an empty slot, for which all ranks have joined
    agreed_.push_back({.signature = *cache_.at(slot)});
    cache_.touch(slot);
  }
  if (ready_.fact(ReadyBits::nothing_new)) {
    start_transfers();
    return;
  }
  const std::int64_t now = now_ns();
  auto mine = new_operations(now);
  if (comm_->rank() != 0) {
    send(0, encode(mine));
    enter(Phase::answer);
    return;
  }
  std::ranges::fill(asked_, std::nullopt);
  asked_[0] = std::move(mine);
  enter(Phase::ask);
}

std::vector<AskedOperation> Negotiation::Cycles::new_operations(std::int64_t now) {
  std::vector<AskedOperation> mine;
  for (auto& [name, waiting] : waiting_) {
    if (waiting.told || cache_.find(name)) continue;
    waiting.told = true;
    mine.push_back({waiting.signature, now - waiting.request->submitted_ns});
  }
  // Oldest first: rank 0 answers in the order in which tensors became complete.
  std::ranges::sort(mine, [](const auto& a, const auto& b) { return a.waited_ns > b.waited_ns; });
  if (join_ != nullptr && !std::exchange(join_told_, true)) {
    mine.push_back({Signature(*join_), now - join_->submitted_ns});
  }
  return mine;
}

void Negotiation::Cycles::send(int to, std::span<const std::byte> message) {
  comm_->send(to, message);
  ++statistics_.negotiations;
}

bool Negotiation::Cycles::ask() {
  bool all = true;
  for (int rank = 0; rank < comm_->size(); ++rank) {
    auto& asked = asked_[static_cast<std::size_t>(rank)];
    if (asked) continue;
    if (const auto message = comm_->try_receive(rank)) asked = decode_asked(*message);
    all = all && asked.has_value();
  }
  if (!all) return false;
  const std::int64_t now = now_ns();
  for (int rank = 0; rank < comm_->size(); ++rank) {
    coordinator_->take(rank, *asked_[static_cast<std::size_t>(rank)], now);
  }
  auto agreed = coordinator_->answer();
  const auto message = encode(agreed);
  for (int rank = 1; rank < comm_->size(); ++rank) send(rank, message);
  statistics_.skew_seconds = coordinator_->skew_seconds();
  take_answer(std::move(agreed));
  return true;
}

bool Negotiation::Cycles::answer() {
  const auto message = comm_->try_receive(0);
  if (!message) return false;
  take_answer(decode_agreed(*message));
  return true;
}

void Negotiation::Cycles::take_answer(std::vector<AgreedOperation> agreed) {
  for (auto& one : agreed) {
    if (one.signature.operation == SyncOperation::join) {
      all_joined_ = true;
    } else if (!one.error.empty()) {
      fail_tensor(one);
    } else {
      const bool evicts = is_cached(one.signature.operation) && cache_.put(one.signature);
      if (evicts && !std::exchange(told_of_eviction_, true)) {
        log(LogLevel::warning,
            "more than {} tensors are synchronized: some are negotiated again in every step; raise "
            "the capacity of the cache",
            options_.cache_capacity);
      }
      agreed_.push_back(std::move(one));
    }
  }
  start_transfers();
}

void Negotiation::Cycles::fail_tensor(const AgreedOperation& agreed) {
  const auto waiting = waiting_.extract(agreed.signature.tensor.name);
  if (!waiting.empty()) waiting.mapped().request->state->fail(parse_error(agreed.error));
}

void Negotiation::Cycles::start_transfers() {
  const auto take = [this](const std::string& name) -> std::shared_ptr<Request> {
    auto waiting = waiting_.extract(name);
    if (!waiting.empty()) return std::move(waiting.mapped().request);
    without_.push_back(name);
    return nullptr;
  };
  for (auto& transfer : fuse(agreed_, options_.fusion_bytes.value_or(kUsualFusion), take)) {
    line_.start(std::move(transfer));
  }
  if (had_something_) {
    statistics_.wait_seconds += static_cast<double>(now_ns() - cycle_begin_ns_) * 1e-9;
  }
  enter(Phase::move);
}

bool Negotiation::Cycles::move() {
  if (!line_.idle()) return false;
  const std::int64_t now = now_ns();
  look_for_stalls(now);
  const bool paces = options_.strategy == SyncStrategy::gs && (cycle_ + 1) % options_.gs_every == 0;
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

bool Negotiation::Cycles::pace() {
  if (!operation_->done()) return false;
  operation_ = nullptr;
  rest_for(*pace_ns_);
  end();
  return true;
}

void Negotiation::Cycles::rest_for(std::int64_t rest) {
  rest_end_ns_ = rest > 0 ? now_ns() + rest : 0;
}

void Negotiation::Cycles::end() {
  ++cycle_;
  ++statistics_.cycles;
  if (agreed_.empty()) ++statistics_.empty_cycles;
  enter(Phase::rest);
  if (all_joined_) {
    join_told_ = false;
    std::exchange(join_, nullptr)->state->finish();
  }
  if (all_close_) {
    closed_ = true;
    std::exchange(close_, nullptr)->state->finish();
  }
}

void Negotiation::Cycles::look_for_stalls(std::int64_t now) {
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

std::vector<std::shared_ptr<Request>> Negotiation::Cycles::take_back() {
  take_requests();
  std::vector<std::shared_ptr<Request>> back;
  for (auto& [name, waiting] : waiting_) back.push_back(std::move(waiting.request));
  waiting_.clear();
  for (auto* const request : {&join_, &close_}) {
    if (*request != nullptr) back.push_back(std::exchange(*request, nullptr));
  }
  join_told_ = false;
  if (coordinator_) coordinator_->clear();
  return back;
}

std::vector<std::string> Negotiation::Cycles::take_without() { return std::exchange(without_, {}); }

std::string Negotiation::Cycles::explain() const {
  const auto cycle_ms = static_cast<double>(options_.cycle.count()) / 1000;
  const std::string cycle =
      fmt::format("cycles of {} ms, {} known tensors at most", cycle_ms, options_.cache_capacity);
  switch (options_.strategy) {
    case SyncStrategy::gs:
      return fmt::format(
          "{}, rests agreed every {}", cycle,
          options_.gs_every == 1 ? "cycle" : fmt::format("{} cycles", options_.gs_every));
    case SyncStrategy::nbcs:
      return fmt::format("{}, waits in rests of {} us", cycle, kRestBetweenLooks.count());
    default:
      return cycle;
  }
}

}  // namespace forebay
