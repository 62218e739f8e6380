#include "loader/share_filler.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "comm/values.hpp"
#include "core/clock.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "loader/packed_sample.hpp"

namespace forebay {
namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{50};
// Who leaves looks up this often for others that do.
constexpr std::chrono::milliseconds kFarewellSlice{10};
constexpr std::array<std::byte, 1> kFarewell{};

/// What a rank says before each filling.
struct Step {
  bool has_load = false;
  bool leaves = false;
};

/// The samples of a load, one after the other.
class SampleCursor {
 public:
  explicit SampleCursor(const std::vector<Run>& runs) : runs_(runs) {}
  std::uint64_t next() {
    while (offset_ == runs_[run_].count) {
      ++run_;
      offset_ = 0;
    }
    return runs_[run_].first + offset_++;
  }

 private:
  const std::vector<Run>& runs_;
  std::size_t run_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace

/// The body of the thread, and its data.
class ShareFiller::Work {
 public:
  explicit Work(ShareFillerParts parts) : parts_(std::move(parts)) {
    parts_.comm->set_timeout(kForever);
    parts_.comm->set_interrupt([this] { check(); });
  }

  const Placement& placement() const { return parts_.placement; }

  void run() {
    try {
      fill_all();
      parts_.loads->end();
      part();
    } catch (const Error& error) {
      fail(error);
    } catch (const std::exception& error) {
      fail(as_error(error, "filling this rank's share", "--stage-bytes"));
    }
  }
  /// Without the parting: nobody else uses the communicator then.
  void run_here() {
    try {
      fill_all();
      parts_.loads->end();
    } catch (const Error& error) {
      fail(error);
      check();
      throw;
    }
  }

  void note(bool leaves) {
    const std::lock_guard lock(mutex_);
    reads_done_ = true;
    leaves_ = leaves_ || leaves;
    changed_.notify_all();
  }
  /// All ranks leave: what is loaded now is loaded for nobody.
  void skip_loads() { skips_ = true; }
  std::uint64_t samples() const { return samples_; }
  std::int64_t waited_ns() const {
    const std::lock_guard lock(mutex_);
    return waited_ns_ + (wait_begin_ns_ > 0 ? now_ns() - wait_begin_ns_ : 0);
  }

 private:
  class WaitForRanks;
  void fill_all();
  bool agree(bool has_load);
  void fill_generation(const std::shared_ptr<const Load>& load);
  void move(const Load& load);
  void move_window(const Load& load, std::uint64_t window, SampleCursor& samples);
  bool wait_for_window(std::uint64_t window);
  void part();
  void fail(const Error& error);
  void check() const {
    if (parts_.comm->concurrent()) parts_.board->poll();
    parts_.board->check();
  }
  bool leaves() const {
    const std::lock_guard lock(mutex_);
    return leaves_;
  }
  void trace(const char* what, std::int64_t begin_ns, std::uint64_t generation) const;

  ShareFillerParts parts_;
  std::uint64_t generation_ = 0;  ///< the next
  bool all_leave_ = false;
  std::atomic<std::uint64_t> samples_ = 0;
  std::atomic<bool> skips_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool reads_done_ = false;
  bool leaves_ = false;
  std::int64_t waited_ns_ = 0;
  std::int64_t wait_begin_ns_ = 0;  ///< 0: it does not wait
};

/// While it lives, the thread waits for other ranks.
class ShareFiller::Work::WaitForRanks : private NonCopyable {
 public:
  explicit WaitForRanks(Work& work) : work_(work) {
    const std::lock_guard lock(work_.mutex_);
    work_.wait_begin_ns_ = now_ns();
  }
  ~WaitForRanks() {
    const std::lock_guard lock(work_.mutex_);
    work_.waited_ns_ += now_ns() - std::exchange(work_.wait_begin_ns_, 0);
  }

 private:
  Work& work_;
};

void ShareFiller::Work::fill_all() {
  for (std::uint64_t number = 0; !all_leave_; ++number) {
    parts_.list->forget(number);
    const auto load = parts_.list->at(number);
    if (!load) return;
    if (load->last) {
      while (agree(false)) fill_generation(nullptr);
    } else if (agree(true)) {
      fill_generation(load);
    }
  }
}

/// Whether any rank has something to fill in, and not all are leaving.
bool ShareFiller::Work::agree(bool has_load) {
  const auto all = gather_all(*parts_.comm, Step{has_load, leaves()});
  all_leave_ = std::ranges::all_of(all, &Step::leaves);
  return !all_leave_ && std::ranges::any_of(all, &Step::has_load);
}

void ShareFiller::Work::fill_generation(const std::shared_ptr<const Load>& load) {
  const std::uint64_t generation = generation_;
  std::int64_t begin = now_ns();
  if (generation > 0) {
    {
      const WaitForRanks wait(*this);
      parts_.exchange->begin();
    }
    trace("swap", begin, generation);
  }
  if (load && !parts_.ahead) parts_.stage->release(0, load->begin);
  parts_.loads->push({.generation = generation, .load = load});
  if (load) {
    begin = now_ns();
    move(*load);
    trace("load", begin, generation);
  }
  begin = now_ns();
  {
    const WaitForRanks wait(*this);
    generation_ = parts_.exchange->open() + 1;
  }
  trace("open", begin, generation);
}

// Not as a TraceSpan: leave() may come in the middle of the span, and the trace may end after it.
void ShareFiller::Work::trace(const char* what, std::int64_t begin_ns,
                              std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  if (parts_.trace == nullptr || leaves_) return;
  parts_.trace->add_span(what, begin_ns, now_ns(), generation);
}

void ShareFiller::Work::move(const Load& load) {
  SampleCursor samples(load.runs);
  for (std::uint64_t window = load.begin; window < load.end; ++window) {
    if (!wait_for_window(window)) return;
    move_window(load, window, samples);
    // A window that is free is read into.
    if (parts_.ahead || window + 1 < load.end) parts_.stage->release(0, window + 1);
  }
}

void ShareFiller::Work::move_window(const Load& load, std::uint64_t window, SampleCursor& samples) {
  HeldShare& share = parts_.exchange->filling();
  const std::uint64_t count = parts_.list->window(load, window).count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const StageEntry& entry = parts_.stage->entry_of(window, i, samples.next());
    const auto value = parts_.stage->value(entry), key = parts_.stage->key(entry);
    pack_sample(value, key, share.take(packed_bytes(value.size(), key.size())));
  }
  samples_ += count;
}

/// False when it is not needed any more.
bool ShareFiller::Work::wait_for_window(std::uint64_t window) {
  do {
    if (skips_) return false;
    check();
  } while (!parts_.stage->wait_published(window, kSlice));
  return true;
}

/// The shares must stay as long as any rank fetches from them.
void ShareFiller::Work::part() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kSlice, [this] { return reads_done_; })) {
    lock.unlock();
    check();
    lock.lock();
  }
  lock.unlock();
  parts_.comm->barrier();
}

// What was given up because of a failure says less than that.
void ShareFiller::Work::fail(const Error& error) {
  if (!parts_.board->failed()) parts_.board->fail(error.within({.file = parts_.path}));
  parts_.stage->wake();
  parts_.loads->end();
}

ShareFiller::ShareFiller(ShareFillerParts parts, bool here)
    : farewell_(parts.farewell), left_(static_cast<std::size_t>(farewell_->size())) {
  work_ = std::make_shared<Work>(std::move(parts));
  if (here) {
    work_->run_here();
  } else {
    thread_ = HelperThread("fb-fill", work_->placement(),
                           [work = work_](const std::stop_token&) { work->run(); });
  }
}

void ShareFiller::reads_are_done() { work_->note(false); }

bool ShareFiller::leave(std::chrono::milliseconds limit) {
  work_->note(true);
  const std::int64_t end = now_ns() + std::chrono::nanoseconds(limit).count();
  try {
    if (thread_.running()) say_farewell();
    while (!thread_.ended_within(kFarewellSlice)) {
      if (now_ns() >= end) return false;
      hear_farewells();
    }
  } catch (const Error&) {
    // Without farewells it takes longer, and ends all the same.
    if (!thread_.ended_within(limit)) return false;
  }
  thread_.stop();
  return true;
}

// Rank 0 tells the others when all have said that they leave.
void ShareFiller::say_farewell() {
  if (farewell_->rank() == 0) {
    left_[0] = true;
  } else {
    farewell_->send(0, kFarewell);
  }
}

void ShareFiller::hear_farewells() {
  if (farewell_->rank() > 0) {
    if (farewell_->try_receive(0)) work_->skip_loads();
    return;
  }
  const auto all = [this] { return std::ranges::find(left_, false) == left_.end(); };
  if (all()) return;
  for (int rank = 1; rank < farewell_->size(); ++rank) {
    if (!left_[static_cast<std::size_t>(rank)] && farewell_->try_receive(rank)) {
      left_[static_cast<std::size_t>(rank)] = true;
    }
  }
  if (!all()) return;
  for (int rank = 1; rank < farewell_->size(); ++rank) farewell_->send(rank, kFarewell);
  work_->skip_loads();
}

void ShareFiller::abandon(std::chrono::milliseconds limit) {
  if (leave(limit)) return;
  log(LogLevel::warning, "a filling of the shares does not end: its thread is left behind");
  thread_.abandon();
}

std::uint64_t ShareFiller::samples() const { return work_->samples(); }

std::int64_t ShareFiller::waited_ns() const { return work_->waited_ns(); }

}  // namespace forebay
