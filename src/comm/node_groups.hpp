// Which ranks form a node, and which of them read for it.
#pragma once

#include <memory>

#include "forebay/communicator.hpp"

namespace forebay {

/// Cuts `node` (ranks that share memory) into virtual nodes of `ranks_per_node` consecutive ranks;
/// 0 leaves it whole. Collective over `node`.
std::shared_ptr<Communicator> split_into_virtual_nodes(Communicator& node, int ranks_per_node);

/// FOREBAY_RANKS_PER_NODE, or 0 when it is not set. Throws usage when it is no positive number.
int ranks_per_node_from_environment();

/// How many ranks of a node read: 1 up to 16 ranks, 2 above (Pumma et al., TOPC 2019, section 4.1
/// found these best on up to 36 cores), or `wanted` if positive, but never more than ranks.
int root_count(int ranks, int wanted);

/// The rank of root number `root` of `roots`, spread evenly over a node of `ranks`.
int root_rank(int root, int roots, int ranks);

/// The root number of `rank`, or -1 when it does not read.
int root_of_rank(int rank, int roots, int ranks);

}  // namespace forebay
