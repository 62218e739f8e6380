// What an epoch of an order costs: reads, memory, and what moves between ranks.
#pragma once

#include <cstdint>

#include "forebay/epoch_order.hpp"

namespace forebay {

/// In samples, all ranks together unless said otherwise.
struct OrderCost {
  bool counted = true;         ///< every buffer looked at; else expected values
  std::uint64_t requests = 0;  ///< runs of samples in a row, as buffers ask for them
  std::uint64_t samples_read = 0;
  std::uint64_t samples_held = 0;       ///< most that one rank has in memory: what it uses and what
                                        ///< is being loaded
  std::uint64_t samples_exchanged = 0;  ///< drawn from the memory of another rank
  std::uint64_t between_nodes = 0;      ///< of these, of another node
  std::uint64_t deliveries = 0;
};

/// Up to so many deliveries all are counted.
inline constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 22;

/// Of one whole epoch that nobody has begun, with two buffers a rank. Ranks that follow each other
/// share nodes, options().ranks_per_node each (0: all on one).
OrderCost cost_of(const EpochOrder& order);

/// Deliveries, over all ranks, between two of one sample that is used again before it is replaced,
/// on average: as many as are recombined at a time. 0 without reuse.
double expected_reuse_distance(const OrderOptions& options);

// How much memory an order asks for: the samples of its largest buffer.

/// No Buffer of any rank and epoch of `order` (valid) loads more samples, and few load less.
/// `resumed`: a run that goes on in an epoch which others have begun.
std::uint64_t most_loaded(const OrderOptions& order, bool resumed);

/// Whether a buffer's samples lie all over the data set, so that neighbours in the file are mostly
/// not wanted together.
bool is_scattered(const OrderOptions& order);

/// Whether a buffer's samples are loaded in the order in which they are drawn.
bool loads_as_drawn(const OrderOptions& order);

}  // namespace forebay
