#include "loader/decode_line.hpp"
#include "core/limits.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
namespace {

// The wait for data looks up this often, for shutdown and for batches to decode.
constexpr std::chrono::milliseconds kSlice{100};
// What is thrown and no Error of ours is for want of memory.
constexpr const char* kWhatTakesMemory = "--batch or --decode-ahead";

}  // namespace

DecodeLine::DecodeLine(std::unique_ptr<DecodePool> pool, BatchSource& source, unsigned ahead,
                       Trace* trace)
    : pool_(std::move(pool)), source_(source), ahead_(ahead), trace_(trace) {}

void DecodeLine::start(const Placement& placement) {
  thread_ =
      HelperThread("fb-decode", placement, [this](const std::stop_token& stop) { live(stop); });
}

void DecodeLine::stop() {
  thread_.request_stop();
  pool_->stop();
  thread_.stop();
}

void DecodeLine::live(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (work_.wait(lock, stop, [this] { return next_to_decode() != nullptr || may_take(); }) &&
         !stop.stop_requested()) {
    if (Entry* entry = next_to_decode()) {
      decode(*entry, lock);
    } else {
      take(lock);
    }
  }
}

DecodeLine::Entry* DecodeLine::next_to_decode() {
  const auto next = std::ranges::find(batches_, false, &Entry::decoded);
  return next == batches_.end() ? nullptr : &*next;
}

// The consumer takes nothing out of the line that is not decoded, and what is added goes to its
// end: the entry stays where it is.
void DecodeLine::decode(Entry& entry, Lock& lock) {
  lock.unlock();
  std::optional<Error> error;
  try {
    const TraceSpan span(trace_, "decode", entry.delivery.iteration);
    pool_->decode(entry.delivery);
  } catch (const Error& thrown) {
    error = thrown;
  } catch (const std::exception& thrown) {
    error = as_error(thrown, "decoding a batch", kWhatTakesMemory);
  }
  lock.lock();
  entry.error = std::move(error);
  entry.decoded = true;
  decoded_.notify_one();
}

void DecodeLine::take(Lock& lock) {
  try {
    if (!state_) state_ = source_.state();
    const auto needed = source_.next_needs();
    at_end_ = !needed;
    if (!needed) return;
    if (!source_.published(*needed)) return wait_for_data(*needed, lock);
    Delivery delivery = source_.take_next();  // may throw, and the state must stay then
    add(std::move(delivery), std::move(*state_));
  } catch (const Error& error) {
    // A reader that has left is the consumer's to meet, if it ever wants more.
    if (error.kind() == ErrorKind::cancelled) {
      at_end_ = true;
    } else {
      failure_ = error;
    }
  } catch (const std::exception& error) {
    failure_ = as_error(error, "taking a batch", kWhatTakesMemory);
  }
}

// What is waited for does not change: if the consumer takes the batch meanwhile, it is there.
void DecodeLine::wait_for_data(std::uint64_t end, Lock& lock) {
  lock.unlock();
  try {
    source_.wait_published(end, kSlice);
  } catch (...) {
    lock.lock();
    throw;
  }
  lock.lock();
}

RunState DecodeLine::state() const {
  if (!batches_.empty()) return batches_.front().state;
  return state_ ? *state_ : source_.state();
}

void DecodeLine::add(Delivery delivery, RunState state) {
  state_.reset();
  batches_.push_back({std::move(delivery), std::move(state), false, std::nullopt});
  work_.notify_one();
}

bool DecodeLine::wait_decoded(Lock& lock, std::chrono::milliseconds limit) {
  return decoded_.wait_for(lock, limit, [this] { return batches_.front().decoded; });
}

Delivery DecodeLine::pop() {
  Entry entry = std::move(batches_.front());
  batches_.pop_front();
  look_again();
  if (entry.error) throw *entry.error;
  return std::move(entry.delivery);
}

void DecodeLine::look_again() {
  at_end_ = false;
  work_.notify_one();
}

}  // namespace forebay
