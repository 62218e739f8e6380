// How many windows of a strided order are read together: from sizes and memory, never timing.
//
// C is the order's, and the same on every machine; how far reads go at once is the reader's. The
// windows of a node that follow each other are one stretch of the file where one node has all
// ranks, and as many reads in flight elsewhere. Large reads are what file systems are fast at (TOPC
// 2019, section 5.3), up to a point: past some tens of MiB nothing is gained, while buffers leave
// the caches. So it is the smallest number with which a node reads `enough_bytes` at once, or what
// the stage allows if that is less: a 64th of a buffer, since samples and layouts vary, and what is
// read together must not be what does not fit.
//
// Where roots take turns, a turn is what is read together. Of many windows at once a single root is
// as many streams for the servers, and a run has too few turns to find out how many roots should
// read at once (docs/results/turns.md): so there it is no more than makes reads large, and a run
// has `most` at most.
#pragma once

#include <cstdint>

namespace forebay {

/// For many servers, each of which wants to be read for a while once its heads are in place.
inline constexpr std::uint64_t kEnoughBytes = std::uint64_t{64} << 20;
/// For a device of this node: its queue is full with less (docs/results/ladder.md).
inline constexpr std::uint64_t kEnoughLocalBytes = std::uint64_t{16} << 20;

/// For roots that take turns: what C is chosen for as well (automatic_coalesce).
inline constexpr std::uint64_t kEnoughInTurnsBytes = std::uint64_t{4} << 20;

struct WindowFacts {
  std::uint64_t entries = 1;
  double sample_bytes = 0;         ///< on average, in the stage and its table
  std::uint64_t window = 1;        ///< samples of all ranks
  std::uint64_t node_share = 1;    ///< the most samples that a node takes of it
  std::uint64_t buffer_bytes = 0;  ///< of the node with the least room
  std::uint64_t enough_bytes = kEnoughBytes;
  std::uint64_t most = UINT64_MAX;  ///< windows
};

/// At least 1; at most so many that they are not more than the data set.
std::uint64_t windows_together(const WindowFacts& facts);

}  // namespace forebay
