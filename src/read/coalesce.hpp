// How many iterations are read together when nobody says: C from sizes and memory, never timing.
//
// C iterations of a node are one stretch of the file a root, so C decides how long reads are. Large
// reads are what file systems are fast at (TOPC 2019, section 5.3), up to a point: past some tens
// of MiB nothing is gained, while the first batches of every window come later and the buffers
// leave the caches. So C is the smallest number with which a node's window holds `enough_bytes`, or
// what the stage allows if that is less: half a buffer, since samples and layouts vary.
#pragma once

#include <cstdint>

namespace forebay {

/// For many servers, each of which wants to be read for a while once its heads are in place.
inline constexpr std::uint64_t kEnoughBytes = std::uint64_t{64} << 20;
/// For a device of this node: its queue is full with less (docs/results/ladder.md).
inline constexpr std::uint64_t kEnoughLocalBytes = std::uint64_t{16} << 20;

struct CoalesceFacts {
  std::uint64_t entries = 1;
  std::uint64_t stored_bytes = 0;  ///< of the file's pages that hold samples
  std::uint64_t batch = 1;
  std::uint64_t node_share = 1;    ///< the most samples that a node takes of a batch
  std::uint64_t buffer_bytes = 0;  ///< of the node with the smallest stage
  std::uint64_t enough_bytes = kEnoughBytes;
};

/// C >= 1: at most so many that a window is not longer than the data set.
std::uint64_t choose_coalesce(const CoalesceFacts& facts);

}  // namespace forebay
