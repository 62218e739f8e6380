// The work of a root: fills one window after another and publishes what is there.
#pragma once

#include <cstdint>
#include <memory>

#include "read/piece_reader.hpp"
#include "read/stage.hpp"

namespace forebay {

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

}  // namespace forebay
