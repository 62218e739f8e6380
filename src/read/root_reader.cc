#include "read/root_reader.hpp"

#include <fmt/chrono.h>

#include <new>
#include <utility>

#include "core/clock.hpp"
#include "core/limits.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "core/read_watch.hpp"
#include "storage/answers.hpp"

namespace forebay {
namespace {

// Every wait looks up this often, for failures and for shutdown.
constexpr std::chrono::milliseconds kSlice{100};

}  // namespace

WindowReader::WindowReader(PieceReader& reader, Stage& stage, int root, ReadFigures& figures)
    : reader_(reader), stage_(stage), root_(root), figures_(figures) {}

void WindowReader::fill(std::uint64_t window, std::uint64_t iterations,
                        std::uint64_t next_iterations, Interval blocked) {
  const std::uint64_t begin = window * stage_.shape().iterations;
  wait_ns_ += blocked.end_ns - blocked.begin_ns;
  std::optional<WindowPart> next;
  if (next_iterations > 0) {
    next = {.window = window + 1, .phase = Phase::whole, .iterations = next_iterations};
  }
  if (!started_ && iterations > 1) {
    const WindowPart rest{.window = window, .phase = Phase::rest, .iterations = iterations};
    read({.window = window, .phase = Phase::first, .iterations = iterations}, rest);
    stage_.publish(root_, begin + 1, blocked);
    read(rest, next);
  } else {
    read({.window = window, .phase = Phase::whole, .iterations = iterations}, next);
  }
  started_ = true;
  stage_.publish(root_, begin + iterations, blocked);
}

void WindowReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    reader_.read(part, next);
  } catch (const Error& error) {
    // Pages that a writer has reused look damaged: that they were changed is the true cause.
    if (error.kind() == ErrorKind::corrupt) reader_.check_unchanged();
    throw;
  }
  reader_.check_unchanged();
  ReadTotals totals = reader_.totals();
  totals.wait_ns = wait_ns_;
  figures_.set(totals);
}

bool EndSignal::operator()() {
  if (stopping()) return true;
  if (comm_->concurrent()) board_->poll();
  return board_->failed();
}

/// The body of the thread, and its data.
class RootReader::Work : private NonCopyable {
 public:
  Work(RootReaderParts parts, std::shared_ptr<EndSignal> end_signal)
      : parts_(std::move(parts)), end_signal_(std::move(end_signal)) {}

  /// A thread that was left behind has nobody to talk to any more: it keeps all that it has.
  ~Work() {
    if (!end_signal_->left_behind()) return;
    static_cast<void>(new (std::nothrow) RootReaderParts(std::move(parts_)));
  }

  /// Of the thread that reads.
  void run() {
    const Where here = place();
    try {
      if (!read_windows()) leave();
    } catch (const Error& error) {
      end_with(error.within(here));
    } catch (const std::exception& error) {
      end_with(
          as_error(error, "reading a window", "--stage-bytes, --batch or --depth").within(here));
    }
    // Reads without an answer may still write into the stage: it stays for as long as we live.
    if (parts_.reader->abandoned()) new std::shared_ptr<Stage>(parts_.stage);
  }

  /// Of the thread that looks on: runs `work` in one that reads.
  static void watch(const std::shared_ptr<Work>& work, const std::stop_token& stop);

 private:
  Where place() const { return {.file = parts_.path, .rank = parts_.rank}; }
  void tell(const Error& error) const {
    parts_.board->fail(error);
    parts_.stage->wake();
  }
  bool read_windows();
  std::optional<Interval> wait_for_buffer(std::uint64_t window);
  void trace(const char* what, std::int64_t begin_ns, std::uint64_t window);
  void leave() const;
  void end_with(const Error& error);

  RootReaderParts parts_;
  std::shared_ptr<EndSignal> end_signal_;
};

/// Whether all windows were read.
bool RootReader::Work::read_windows() {
  WindowReader reader(*parts_.reader, *parts_.stage, parts_.root, *parts_.figures);
  std::uint64_t window = parts_.first_window;
  for (std::uint64_t wanted = parts_.list->iterations(window); wanted > 0; ++window) {
    const auto blocked = wait_for_buffer(window);
    if (!blocked) return false;
    const std::int64_t begin = now_ns();
    const std::uint64_t next_wanted = parts_.list->iterations(window + 1);
    reader.fill(window, wanted, next_wanted, *blocked);
    trace("read", begin, window);
    wanted = next_wanted;
  }
  return true;
}

// How long the consumers compute is theirs to decide, so this wait has no deadline of its own: it
// ends with the loader, with a failure, or with the death of a rank, which ends up on the board.
std::optional<Interval> RootReader::Work::wait_for_buffer(std::uint64_t window) {
  Interval blocked{.begin_ns = now_ns(), .end_ns = 0};
  while (!(*end_signal_)()) {
    if (!parts_.stage->wait_free(window, kSlice)) continue;
    blocked.end_ns = now_ns();
    trace("wait for buffer", blocked.begin_ns, window);
    return blocked;
  }
  return std::nullopt;
}

void RootReader::Work::trace(const char* what, std::int64_t begin_ns, std::uint64_t window) {
  if (parts_.trace == nullptr || end_signal_->stopping()) return;
  parts_.trace->add_span(what, begin_ns, now_ns(), window);
}

void RootReader::Work::leave() const {
  if (end_signal_->left_behind()) return;
  parts_.reader->leave();
  parts_.turns->leave();
}

void RootReader::Work::end_with(const Error& error) {
  // A wait for other roots that was given up says less than what it was given up for.
  const bool echo = error.kind() == ErrorKind::cancelled && (*end_signal_)();
  if (!echo && !end_signal_->left_behind()) tell(error);
  try {
    leave();
  } catch (const Error& second) {
    log(LogLevel::debug, "while leaving: {}", second.what());
  }
}

void RootReader::Work::watch(const std::shared_ptr<Work>& work, const std::stop_token& stop) {
  const RootReaderParts& parts = work->parts_;
  const ReadWatch::Member watched_by_nobody_else(nullptr);
  try {
    const AnswerLimit limit{.each_read = parts.timeout, .path = parts.path, .stop = stop};
    if (with_answers(limit, "fb-read", parts.placement, [work] { work->run(); })) return;
    work->end_signal_->leave_behind();
    log(work->end_signal_->failed() ? LogLevel::info : LogLevel::error,
        "{}: the file system does not answer a read; the thread that waits for it is left behind",
        parts.path);
  } catch (const Error& error) {
    work->end_signal_->leave_behind();
    work->tell(error.within(work->place()));
  }
}

RootReader::RootReader(RootReaderParts parts, std::shared_ptr<EndSignal> end_signal)
    : stage_(parts.stage), end_signal_(end_signal), path_(parts.path) {
  work_ = std::make_shared<Work>(std::move(parts), std::move(end_signal));
  thread_ = HelperThread("fb-watch", {},
                         [work = work_](const std::stop_token& stop) { Work::watch(work, stop); });
}

void RootReader::stop(std::chrono::milliseconds limit) {
  if (!thread_.running()) return;
  end_signal_->stop();
  stage_->wake();
  if (thread_.ended_within(limit)) return thread_.stop();
  end_signal_->leave_behind();
  thread_.abandon();
  log(LogLevel::error,
      "{}: reading has not ended for {} after the loader was closed; its thread is left behind",
      path_, limit);
}

}  // namespace forebay
