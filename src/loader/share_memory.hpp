// How the memory budget of a rank is divided where ranks hold samples for each other:
//
//   | stage: windows on their way | read buffer: batches fetched ahead | share, 1 or 2 fillings |
//
// Lengths are known only once samples have been read, so a share is made larger than it is expected
// to get, up to what the node's budget leaves for it; memory is taken as it grows.
#pragma once

#include <cstdint>

#include "forebay/communicator.hpp"

namespace forebay {

/// Bytes of packed samples, as far as they are known before they are read.
struct SampleSizes {
  double mean = 0;
  std::uint64_t largest = 0;  ///< that was seen
};

/// What a rank needs memory for.
struct ShareNeeds {
  std::uint64_t budget_bytes = 0;  ///< of this rank
  SampleSizes sizes;
  double stored_bytes = 0;        ///< in the file, a sample on average
  bool scattered = false;         ///< samples are read one by one
  std::uint64_t samples = 0;      ///< in its share, at most
  int generations = 1;            ///< fillings at a time
  int windows = 2;                ///< of the stage
  std::uint64_t batch_share = 0;  ///< samples of a batch
};

struct ShareMemory {
  std::uint64_t stage_bytes = 0;
  std::uint64_t window_samples = 1;
  std::uint64_t ring_bytes = 0;
  std::uint64_t ring_blocks = 0;
  std::uint64_t beside_ring_bytes = 0;  ///< for samples that are larger than it
  std::uint64_t share_bytes = 0;        ///< of one filling, at most
};

/// Local: all but share_bytes.
ShareMemory divide_budget(const ShareNeeds& needs);

/// Sets share_bytes. Throws, on all ranks, usage when a node's shares do not fit its budget, and io
/// when they do not fit its shared memory; with needed and free bytes. Collective over both.
void fit_shares(Communicator& world, Communicator& node, const ShareNeeds& needs,
                ShareMemory& memory);

}  // namespace forebay
