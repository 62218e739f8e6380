// The work of a root: fills one window after another, from a record source into the stage.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "format/record_source.hpp"
#include "read/stage.hpp"
#include "read/window_plan.hpp"

namespace forebay {

/// Where a root's time went. Written by the reading thread, read by any.
struct ReadTimes {
  std::atomic<std::int64_t> seek_ns = 0;
  std::atomic<std::int64_t> read_ns = 0;
  std::atomic<std::int64_t> wait_ns = 0;
};

/// Used by one thread. All references must outlive it.
class WindowReader {
 public:
  WindowReader(RecordSource& source, const WindowPlan& plan, Stage& stage, int root,
               ReadTimes& times);

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
  ReadTimes& times_;
};

}  // namespace forebay
