#include "exchange/read_buffer.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/clock.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {

BlockRing::BlockRing(std::size_t bytes, std::size_t blocks, std::size_t beside)
    : capacity_(std::max(bytes, kAlignment) / kAlignment * kAlignment),
      memory_(allocate(capacity_)),
      entries_(std::max<std::size_t>(blocks, 1)),
      beside_(beside) {}

BlockRing::Memory BlockRing::allocate(std::size_t bytes) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  if (bytes >= kLarge) require_memory(bytes, "samples of other ranks", "--stage-bytes");
  Memory memory = take_memory(bytes);
  if (memory == nullptr) throw no_memory(bytes, "samples of other ranks", "--stage-bytes");
  return memory;
}

void BlockRing::leak_memory() {
  static_cast<void>(memory_.release());
  for (Entry& entry : entries_) static_cast<void>(entry.own.release());
}

/// Blocks without bytes take room too: so the offset of the oldest tells a full ring from others.
std::size_t BlockRing::room_for(std::uint64_t bytes) {
  return std::max<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
}

bool BlockRing::could_hold(std::uint64_t bytes) const { return bytes <= largest(); }

/// Moves the tail to where `room` bytes are free, if there are.
bool BlockRing::find_room(std::size_t room) {
  if (released_ == assigned_) tail_ = 0;
  if (released_ == assigned_) return room <= capacity_;
  const std::size_t head = at(released_).begin;
  if (tail_ <= head) return room <= head - tail_;  // wrapped around, or full
  if (room <= capacity_ - tail_) return true;
  if (room > head) return false;
  tail_ = 0;
  return true;
}

Block* BlockRing::assign(const Wanted& wanted, std::uint64_t bytes) {
  if (assigned_ - released_ == entries_.size() || !could_hold(bytes)) return nullptr;
  const bool beside = bytes > capacity_;
  if (beside && bytes > beside_ - used_beside_) return nullptr;
  const std::size_t room = room_for(beside ? 0 : bytes);
  if (!find_room(room)) return nullptr;
  Entry& entry = at(assigned_);
  if (beside) {
    entry.own = allocate(static_cast<std::size_t>(bytes));
    used_beside_ += bytes;
  }
  std::byte* const begin = beside ? entry.own.get() : memory_.get() + tail_;
  entry.block = {.wanted = wanted,
                 .bytes = {begin, static_cast<std::size_t>(bytes)},
                 .tag = BlockTag::assigned};
  entry.begin = tail_;
  tail_ += room;
  ++assigned_;
  return &entry.block;
}

void BlockRing::set_ready(std::size_t count) {
  for (; count > 0 && ready_ < assigned_; --count) at(ready_++).block.tag = BlockTag::ready;
}

const Block* BlockRing::take() { return taken_ < ready_ ? &at(taken_++).block : nullptr; }

const Block* BlockRing::next_to_take() const {
  return taken_ < assigned_ ? &at(taken_).block : nullptr;
}

void BlockRing::release(std::size_t count) {
  for (; count > 0 && released_ < taken_; --count) {
    Entry& entry = at(released_++);
    entry.block.tag = BlockTag::empty;
    if (!entry.own) continue;
    used_beside_ -= entry.block.bytes.size();
    entry.own.reset();
  }
}

namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{20};
constexpr std::chrono::seconds kLongestEnd{5};

}  // namespace

/// The body of the thread, and what it shares with the consumer.
class ReadBuffer::Work : private NonCopyable {
 public:
  Work(std::shared_ptr<Exchange> exchange, const ReadBufferOptions& options, Source source)
      : exchange_(std::move(exchange)),
        source_(std::move(source)),
        trace_(options.trace),
        ring_(options.bytes, options.blocks, options.beside),
        ahead_(options.ahead) {}
  ~Work() { let_go(); }

  /// What MPI may still write into is left to it. Not while the thread runs.
  void let_go() {
    if (exchange_ && !exchange_->quiet()) ring_.leak_memory();
    exchange_.reset();
    source_ = nullptr;
  }

  void run(const std::stop_token& stop) {
    ask_for_short_turns();
    try {
      while (!stop.stop_requested()) {
        const auto batch = source_();
        if (!batch) break;
        read(*batch, stop);
        if (batch->last) exchange_->release(batch->generation);
      }
      end(nullptr);
    } catch (const Error& error) {
      fail(error, stop);
    } catch (const std::exception& error) {
      fail(as_error(error, "samples of other ranks", "--stage-bytes"), stop);
    }
  }

  void take(std::size_t most, const WaitPolicy& policy, std::vector<const Block*>& to) {
    const Stopwatch exposed(exposed_seconds_);
    std::unique_lock lock(mutex_);
    asked_ = figures_.samples + most;
    if (!ahead_) changed_.notify_all();
    std::optional<Waiting> waiting;
    for (;;) {
      if (!failure_ && exchange_) exchange_->check();
      std::size_t taken = 0;
      for (; taken < most; ++taken) {
        const Block* const block = ring_.take();
        if (block == nullptr) break;
        to.push_back(block);
      }
      figures_.samples += taken;
      if (taken > 0) return;
      if (failure_) std::rethrow_exception(failure_);
      if (ended_ || (stuck_ && ring_.taken() > 0)) return;
      if (!waiting) waiting.emplace(policy, awaited());
      if (changed_.wait_for(lock, kSlice) == std::cv_status::no_timeout) continue;
      lock.unlock();
      waiting->check();
      lock.lock();
    }
  }

  bool full() {
    const std::lock_guard lock(mutex_);
    return stuck_ && ring_.taken() > 0 && ring_.none_ready();
  }

  void release(std::size_t count) {
    const std::lock_guard lock(mutex_);
    ring_.release(count);
    stuck_ = false;  // until the thread has looked again
    changed_.notify_all();
  }

  ReadBufferFigures figures() {
    const std::lock_guard lock(mutex_);
    ReadBufferFigures figures = figures_;
    figures.exposed_seconds = exposed_seconds_;
    return figures;
  }

 private:
  // In parts of a quarter of the ring, so that the consumer has something while the next is
  // fetched.
  void read(const WantedBatch& batch, const std::stop_token& stop) {
    const auto stopping = [&stop] { return stop.stop_requested(); };
    exchange_->wait_opened(batch.generation, stopping);
    for (std::size_t done = 0; done < batch.wanted.size() && !stopping();) {
      const std::size_t count = assign(batch, done, stop);
      const auto part = std::span(batch.wanted).subspan(done, count);
      const std::int64_t begin = now_ns();
      exchange_->fetch(batch.generation, part, to_, stopping);
      // A fetch that stop() has not waited for may end after the trace.
      if (trace_ != nullptr && !stopping()) {
        trace_->add_span("fetch", begin, now_ns(), batch.generation);
      }
      done += count;
      const std::lock_guard lock(mutex_);
      ring_.set_ready(count);
      changed_.notify_all();
    }
  }

  /// Waits for the first block, and takes more as far as they are empty.
  std::size_t assign(const WantedBatch& batch, std::size_t first, const std::stop_token& stop) {
    to_.clear();
    std::unique_lock lock(mutex_);
    const Stopwatch waited(figures_.full_seconds);
    const auto assigned = [&] {
      if (!asked_for()) return false;
      const bool found = assign_one(batch, batch.wanted[first]);
      if (std::exchange(stuck_, !found) == found) changed_.notify_all();
      return found;
    };
    while (!stop.stop_requested() && !changed_.wait_for(lock, stop, kSlice, assigned)) {
      exchange_->check_others();
    }
    std::size_t bytes = to_.empty() ? 0 : to_.front().size();
    while (!to_.empty() && first + to_.size() < batch.wanted.size() &&
           bytes < ring_.capacity() / 4 && asked_for() &&
           assign_one(batch, batch.wanted[first + to_.size()])) {
      bytes += to_.back().size();
    }
    return to_.size();
  }

  bool asked_for() const { return ahead_ || assigned_ < asked_; }
  bool assign_one(const WantedBatch& batch, const Wanted& wanted) {
    const std::uint64_t bytes = exchange_->bytes_of(batch.generation, wanted);
    if (!ring_.could_hold(bytes)) {
      throw Error(
          ErrorKind::usage,
          fmt::format("a sample of {} bytes of rank {} is larger than the {} bytes that the "
                      "memory budget leaves for one",
                      bytes, wanted.owner, ring_.largest()),
          "raise --stage-bytes", {.sample = wanted.sample});
    }
    Block* const block = ring_.assign(wanted, bytes);
    if (block == nullptr) return false;
    to_.push_back(block->bytes);
    ++assigned_;
    return true;
  }

  // What was given up because the buffer ends is no failure. The others need to know of all else.
  void fail(const Error& error, const std::stop_token& stop) {
    const bool stopping = stop.stop_requested();
    end(std::make_exception_ptr(error));
    if (!stopping) exchange_->fail(error);
  }

  void end(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = std::move(failure);
    changed_.notify_all();
  }

  std::string awaited() const {
    const Block* const block = ring_.next_to_take();
    if (block == nullptr) return "the next sample";
    return fmt::format("sample {} from rank {}", block->wanted.sample, block->wanted.owner);
  }

  std::shared_ptr<Exchange> exchange_;
  Source source_;
  Trace* trace_;
  std::vector<std::span<std::byte>> to_;  ///< of the blocks that were assigned last
  double exposed_seconds_ = 0;            ///< of the consumer's thread

  std::mutex mutex_;
  std::condition_variable_any changed_;
  BlockRing ring_;
  const bool ahead_;
  std::uint64_t assigned_ = 0;  ///< samples, from the start
  std::uint64_t asked_ = 0;     ///< as far as the consumer has come
  bool stuck_ = false;          ///< the thread waits for an empty block
  bool ended_ = false;
  std::exception_ptr failure_;
  ReadBufferFigures figures_;
};

ReadBuffer::ReadBuffer(std::shared_ptr<Exchange> exchange, const ReadBufferOptions& options,
                       Source source)
    : policy_{.timeout = options.patience,
              .interrupt =
                  [exchange, ask = options.interrupt] {
                    exchange->check_others();
                    if (ask) ask();
                  }},
      work_(std::make_shared<Work>(std::move(exchange), options, std::move(source))),
      thread_("fb-fetch", options.placement,
              [work = work_](const std::stop_token& stop) { work->run(stop); }) {}

ReadBuffer::~ReadBuffer() { stop(); }

void ReadBuffer::stop() {
  if (!thread_.running()) return;
  if (thread_.ended_within(kLongestEnd)) {
    thread_.stop();
    work_->let_go();
    policy_.interrupt = nullptr;
    return;
  }
  log(LogLevel::warning, "a fetch of samples does not end: its thread is left behind");
  thread_.abandon();
}

const Block* ReadBuffer::next() {
  std::vector<const Block*> one;
  take(1, one);
  if (!one.empty()) return one.front();
  if (!full()) return nullptr;
  throw Error(ErrorKind::usage, "all samples that the read buffer has room for are held",
              "release some before asking for the next");
}

void ReadBuffer::take(std::size_t most, std::vector<const Block*>& to) {
  work_->take(most, policy_, to);
}

bool ReadBuffer::full() const { return work_->full(); }

void ReadBuffer::release(std::size_t count) { work_->release(count); }

ReadBufferFigures ReadBuffer::figures() const { return work_->figures(); }

}  // namespace forebay
