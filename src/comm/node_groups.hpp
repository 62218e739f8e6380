// Which ranks form a node, and which of them read for it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay {

/// Cuts `node` (ranks that share memory) into virtual nodes of `ranks_per_node` consecutive ranks;
/// 0 leaves it whole. Collective over `node`.
std::shared_ptr<Communicator> split_into_virtual_nodes(Communicator& node, int ranks_per_node);

/// FOREBAY_RANKS_PER_NODE, or 0 when it is not set. Throws usage when it is no positive number.
int ranks_per_node_from_environment();

/// Where the ranks of a communicator are. Nodes are numbered by their first ranks.
struct NodesOfRanks {
  std::vector<int> first;  ///< by rank: the first rank of its node
  std::vector<int> node;   ///< by rank
  int count = 0;
};
/// `node` is this rank's part of `comm`, as split_by_node() gives it. Collective.
NodesOfRanks find_nodes(Communicator& comm, Communicator& node);

/// How many ranks of a node read: 1 up to 16 ranks, 2 above (Pumma et al., TOPC 2019, section 4.1
/// found these best on up to 36 cores), or `wanted` if positive, but never more than ranks.
int root_count(int ranks, int wanted);

/// Which ranks of a node read, ascending: rank 0 and others. `domains` tells the NUMA node of each
/// rank, -1 where it is not bound to one. Roots are spread evenly over NUMA nodes, so that each
/// fills memory that is near to it with the bandwidth of its own; and inside a NUMA node, or where
/// ranks are not bound, evenly over the ranks. 1 <= roots <= ranks.
std::vector<int> choose_roots(std::span<const int> domains, int roots);

}  // namespace forebay
