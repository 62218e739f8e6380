// The consumer's look-out: what it sees of other ranks' failures, of its caller's interrupts and of
// the clock while it waits; and its wait for data, with what that has cost.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/failure_board.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/trace.hpp"
#include "read/stage.hpp"

namespace forebay {

/// What ends the loader of one rank ends all of them, with the failure that was published first.
class Watch {
 public:
  /// `place`: the data set and this rank, for messages.
  Watch(Where place, std::shared_ptr<FailureBoard> board, std::shared_ptr<Stage> stage)
      : place_(std::move(place)), board_(std::move(board)), stage_(std::move(stage)) {}

  void set_interrupt(std::function<void()> interrupt) { interrupt_ = std::move(interrupt); }
  /// Throws what a rank has failed with; check() looks on other nodes, too.
  void check_here() const { board_->check(); }
  void check() const;
  void fail(const Error& error) const;
  [[noreturn]] void fail_everywhere(const Error& error) const;
  /// The caller's interrupt, in a wait of the consumer. What it throws has ended the loader.
  void ask_interrupt() const;
  /// Asks `done`, which waits up to its argument itself, until it says so. Throws `late` when
  /// `patience` is over, and what ends the loader.
  Interval wait(const std::function<bool(std::chrono::milliseconds)>& done,
                std::chrono::milliseconds patience, const std::function<Error()>& late) const;

 private:
  Where place_;
  std::shared_ptr<FailureBoard> board_;
  std::shared_ptr<Stage> stage_;
  std::function<void()> interrupt_;  ///< may be empty
};

/// Waits for what roots publish in the stage.
class DataWait {
 public:
  DataWait(const Watch& watch, std::shared_ptr<Stage> stage, std::chrono::milliseconds patience,
           Trace* trace)
      : watch_(watch), stage_(std::move(stage)), patience_(patience), trace_(trace) {}

  /// `iteration` is for messages.
  void wait(std::uint64_t published, std::uint64_t iteration);
  void add_to(LoaderStatistics& all) const;

 private:
  const Watch& watch_;
  std::shared_ptr<Stage> stage_;
  std::chrono::milliseconds patience_;
  Trace* trace_;
  double exposed_seconds_ = 0;
  double skew_seconds_ = 0;
};

}  // namespace forebay
