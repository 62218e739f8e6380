// Which ranks share a node.
#pragma once

#include <memory>
#include <vector>

#include "forebay/communicator.hpp"

namespace forebay::bench {

struct Layout {
  std::shared_ptr<Communicator> node;  ///< the ranks of this node
  std::vector<int> node_of_rank;       ///< nodes are numbered by their first rank
  int nodes = 0;

  bool leads_node() const { return node->rank() == 0; }
};

/// Collective.
Layout find_layout(Communicator& comm);

}  // namespace forebay::bench
