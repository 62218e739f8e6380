// The reading side of a loader: the thread of a root that fills the stage, and how it is told in
// words.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "loader/feed.hpp"
#include "read/read_outline.hpp"
#include "read/root_reader.hpp"

namespace forebay {

struct Reading {
  /// Waits some seconds for a read in progress.
  struct Stop {
    void operator()(RootReader* reader) const;
  };

  std::unique_ptr<RootReader, Stop> reader;  ///< of a root
  std::string turns;                         ///< of several roots, when reading begins
  std::string how;                           ///< how records are located and read
  std::shared_ptr<const InPlace> in_place;   ///< of a root that uses records where they lie
  std::optional<ReadOutline> outline;        ///< on rank 0, when asked for
};

/// The memory of the stage, where its size is ours to choose: no more than what windows of this
/// data set can take.
std::uint64_t stage_bytes_needed(const Opened& opened, const StageShape& stage);

/// Collective: roots agree on their turns. Starts the thread on roots; fails on all ranks together,
/// with usage or io where the stage, or the shared memory that it lies in, is too small for what
/// comes first.
Reading start_reading(const Opened& opened, const FeedPlan& plan,
                      const std::shared_ptr<Stage>& stage,
                      const std::shared_ptr<ReadFigures>& figures, Trace* trace);

}  // namespace forebay
