// What the ranks agree on in a cycle: the tensors that all know and have, by bits (paper 002, 6.2),
// and new ones, by asking rank 0.
#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "sync/negotiation.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

bool is_cached(SyncOperation operation) {
  return operation == SyncOperation::allreduce || operation == SyncOperation::barrier;
}

}  // namespace

void Negotiation::take_requests() {
  for (auto& request : queue_.take()) {
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

void Negotiation::start_compare() {
  const std::int64_t now = now_ns();
  std::uint64_t facts = ReadyBits::nothing_new | ReadyBits::nothing_invalid;
  facts |= close_ != nullptr ? ReadyBits::closing : ReadyBits::nobody_closes;
  ready_ = ReadyBits(cache_.slots(), facts, join_told_);
  invalid_ = ReadyBits(cache_.slots(), 0, false);
  if (join_ != nullptr && !join_told_) ready_.clear_fact(ReadyBits::nothing_new);
  if (close_ != nullptr && !close_told_) ready_.clear_fact(ReadyBits::nothing_new);
  had_something_ = !waiting_.empty();
  for (auto& [name, waiting] : waiting_) look_up(waiting, now);
  operation_ = collectives_->all_reduce(ready_.bytes(), TensorType::int64, Combination::bit_and);
  ++statistics_.negotiations;
}

void Negotiation::look_up(Waiting& waiting, std::int64_t now) {
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

/// Then the coordinator shall see who is missing. Whoever has closed will not come.
bool Negotiation::waits_too_long(const Waiting& waiting, std::int64_t now) const {
  using std::chrono::nanoseconds;
  if (one_closes_) return true;
  nanoseconds limit = options_.stall_warning;
  if (options_.stall_limit.count() > 0) limit = std::min<nanoseconds>(limit, options_.stall_limit);
  return now - waiting.request->submitted_ns >= limit.count();
}

bool Negotiation::compare() {
  if (!operation_->done()) return false;
  all_close_ = ready_.fact(ReadyBits::closing);
  one_closes_ = !ready_.fact(ReadyBits::nobody_closes);
  if (ready_.fact(ReadyBits::nothing_invalid)) {
    agree_on_known();
    return true;
  }
  operation_ = collectives_->all_reduce(invalid_.bytes(), TensorType::int64, Combination::bit_or);
  ++statistics_.negotiations;
  enter(Phase::invalidate);
  return true;
}

bool Negotiation::invalidate() {
  if (!operation_->done()) return false;
  for (const auto slot : invalid_.set_slots()) {
    ready_.clear(slot);
    cache_.erase(slot);
  }
  agree_on_known();
  return true;
}

void Negotiation::agree_on_known() {
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

std::vector<AskedOperation> Negotiation::new_operations(std::int64_t now) {
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
  if (close_ != nullptr && !std::exchange(close_told_, true)) {
    mine.push_back({Signature(*close_), now - close_->submitted_ns});
  }
  return mine;
}

void Negotiation::send(int to, std::span<const std::byte> message) {
  comm_->send(to, message);
  ++statistics_.negotiations;
}

bool Negotiation::ask() {
  bool all = true;
  for (int rank = 0; rank < comm_->size(); ++rank) {
    auto& asked = asked_[static_cast<std::size_t>(rank)];
    if (asked) continue;
    if (const auto message = comm_->try_receive(rank))
      asked = decode<std::vector<AskedOperation>>(*message);
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

bool Negotiation::answer() {
  const auto message = comm_->try_receive(0);
  if (!message) return false;
  take_answer(decode<std::vector<AgreedOperation>>(*message));
  return true;
}

void Negotiation::take_answer(std::vector<AgreedOperation> agreed) {
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

void Negotiation::fail_tensor(const AgreedOperation& agreed) {
  const auto waiting = waiting_.extract(agreed.signature.tensor.name);
  if (!waiting.empty()) waiting.mapped().request->fail(parse_error(agreed.error));
}

void Negotiation::start_transfers() {
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

}  // namespace forebay
