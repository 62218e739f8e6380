// The work of a root: fills one window after another, from a record source into the stage.
#pragma once

#include <cstdint>
#include <mutex>

#include "format/record_source.hpp"
#include "read/stage.hpp"
#include "read/window_plan.hpp"

namespace forebay {

/// Where a root's time went, and what it asked of the file system.
struct ReadTotals {
  std::int64_t seek_ns = 0;
  std::int64_t read_ns = 0;
  std::int64_t wait_ns = 0;  ///< for a free buffer
  SourceCounters source;
};

/// The same, written by the reading thread after each phase and read by any. Thread-safe.
class ReadFigures {
 public:
  ReadTotals get() const {
    const std::lock_guard lock(mutex_);
    return totals_;
  }
  void set(const ReadTotals& totals) {
    const std::lock_guard lock(mutex_);
    totals_ = totals;
  }

 private:
  mutable std::mutex mutex_;
  ReadTotals totals_;
};

/// Used by one thread. All references must outlive it.
class WindowReader {
 public:
  WindowReader(RecordSource& source, const WindowPlan& plan, Stage& stage, int root,
               ReadFigures& figures);

  /// Fills the first `iterations` iterations of `window`, which must be free, and publishes them:
  /// iteration 0 first. Throws what the source throws; `changed` when a writer may have touched
  /// what was read.
  void fill(std::uint64_t window, std::uint64_t iterations, Interval blocked);

 private:
  void read_phase(std::uint64_t window, Phase phase, std::uint64_t iterations);
  void read_piece(std::uint64_t window, const Piece& piece);

  RecordSource& source_;
  const WindowPlan& plan_;
  Stage& stage_;
  int root_;
  ReadFigures& figures_;
  ReadTotals totals_;
};

}  // namespace forebay
