#include "loader/watch.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"

namespace forebay {
namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{100};

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::int64_t overlap(const Interval& a, const Interval& b) {
  return std::max<std::int64_t>(0, std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns));
}

}  // namespace

void Watch::check() const {
  board_->poll();
  board_->check();
}

void Watch::fail(const Error& error) const {
  board_->fail(error);
  stage_->wake();
}

void Watch::fail_everywhere(const Error& error) const {
  const Error placed = error.within(place_);
  fail(placed);
  board_->check();
  throw placed;
}

void Watch::ask_interrupt() const {
  if (!interrupt_) return;
  try {
    interrupt_();
  } catch (...) {
    fail(Error(ErrorKind::cancelled, "the wait for data was interrupted", "", place_));
    throw;
  }
}

Interval Watch::wait(const std::function<bool(std::chrono::milliseconds)>& done,
                     std::chrono::milliseconds patience, const std::function<Error()>& late) const {
  const std::int64_t begin = now_ns();
  WaitedTime waited;
  while (!done(kSlice)) {
    check();
    ask_interrupt();
    waited.step();
    if (waited.total() >= patience) throw late();
  }
  return {.begin_ns = begin, .end_ns = now_ns()};
}

// Waiting while the root itself waits for a buffer means waiting for a slower rank; the rest of
// the wait is I/O that did not hide behind computing.
void DataWait::wait(std::uint64_t published, std::uint64_t iteration) {
  const Interval waited = watch_.wait(
      [&](std::chrono::milliseconds slice) { return stage_->wait_published(published, slice); },
      patience_,
      [&] {
        return Error(ErrorKind::communication,
                     fmt::format("no data for iteration {} after {}", iteration, patience_),
                     "check the file system and the reading rank, or raise --timeout");
      });
  const std::int64_t skew = overlap(waited, stage_->last_blocked());
  skew_seconds_ += seconds(skew);
  exposed_seconds_ += seconds(waited.end_ns - waited.begin_ns - skew);
  if (trace_ != nullptr) {
    trace_->add_span("wait for data", waited.begin_ns, waited.end_ns, iteration);
  }
}

void DataWait::add_to(LoaderStatistics& all) const {
  all.exposed_seconds += exposed_seconds_;
  all.skew_seconds += skew_seconds_;
}

}  // namespace forebay
