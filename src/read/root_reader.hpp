// The reading thread of a root:
//
//   wait for a free buffer -> WindowReader::fill -> published -> next window
//
// It shares with its creator only what both hold shared pointers to, and the stage's protocol. So
// when a file server does not answer and the thread hangs in the kernel, it can be left behind:
// what it may still touch stays alive with it. Another thread, which sleeps, finds that out, and
// tells all ranks (storage/answers.hpp).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "comm/failure_board.hpp"
#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "forebay/trace.hpp"
#include "read/piece_reader.hpp"
#include "read/reading_list.hpp"
#include "read/stage.hpp"
#include "read/turns.hpp"

namespace forebay {

/// The work of a root: fills one window after another and publishes what is there.
/// Used by one thread. All references must outlive it.
class WindowReader {
 public:
  WindowReader(PieceReader& reader, Stage& stage, int root, ReadFigures& figures);

  /// Fills the first `iterations` iterations of `window`, which must be free, and publishes them.
  /// In the first window of a run, whose ranks wait to start, iteration 0 comes first. Throws what
  /// the reader throws; `changed` when a writer may have touched what was read.
  /// `next_iterations`: how many of the window after it are wanted, 0 at the end.
  void fill(std::uint64_t window, std::uint64_t iterations, std::uint64_t next_iterations,
            Interval blocked);

 private:
  void read(const WindowPart& part, const std::optional<WindowPart>& next);

  PieceReader& reader_;
  Stage& stage_;
  int root_;
  ReadFigures& figures_;
  std::int64_t wait_ns_ = 0;
  bool started_ = false;
};

/// Everything that the thread uses. Members are destroyed from the last to the first.
struct RootReaderParts {
  std::string path;
  int rank = 0;  ///< global, for messages
  int root = 0;  ///< number among the roots of the stage
  std::uint64_t first_window = 0;
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<FailureBoard> board;
  std::shared_ptr<ReadingList> list;
  std::shared_ptr<Stage> stage;
  std::shared_ptr<ReadFigures> figures;
  std::shared_ptr<const void> data;  ///< the data set: what the reader refers to
  std::unique_ptr<Turns> turns;
  std::unique_ptr<PieceReader> reader;
  Placement placement;
  std::chrono::milliseconds timeout = std::chrono::hours(24);  ///< of each read
  Trace* trace = nullptr;  ///< not touched any more once a stop was requested
};

/// What ends the waits of a reading thread for other roots: given to whatever waits in it, before
/// the thread exists. Thread-safe.
class EndSignal {
 public:
  EndSignal(std::shared_ptr<Communicator> comm, std::shared_ptr<FailureBoard> board)
      : comm_(std::move(comm)), board_(std::move(board)) {}

  void stop() { stopping_.request_stop(); }
  bool stopping() const { return stopping_.stop_requested(); }
  /// From now on nobody waits for the thread, and MPI may end at any time.
  void leave_behind() { left_behind_ = true; }
  bool left_behind() const { return left_behind_; }
  std::stop_token token() const { return stopping_.get_token(); }
  /// Whether a rank has failed, and said why.
  bool failed() const { return board_->failed(); }
  /// Whether to stop waiting: the loader closes, or a rank has failed.
  bool operator()();

 private:
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<FailureBoard> board_;
  std::stop_source stopping_;
  std::atomic<bool> left_behind_ = false;
};

/// Local. Created and destroyed by one thread.
/// What the thread has worked with, the turns among it, lives on until this object ends: other
/// roots may still be at their last windows, and ask this one for a ticket.
class RootReader : private NonCopyable {
 public:
  RootReader(RootReaderParts parts, std::shared_ptr<EndSignal> end_signal);

  /// Ends the thread; waits at most `limit` for it, and not for a read that gets no answer, which
  /// it logs. Idempotent.
  void stop(std::chrono::milliseconds limit);

 private:
  class Work;

  std::shared_ptr<Stage> stage_;
  std::shared_ptr<EndSignal> end_signal_;
  std::string path_;
  std::shared_ptr<Work> work_;
  HelperThread thread_;
};

}  // namespace forebay
