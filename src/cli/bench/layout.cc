#include "cli/bench/layout.hpp"

#include <utility>

#include "comm/node_groups.hpp"

namespace forebay::bench {

Layout find_layout(Communicator& comm) {
  Layout layout;
  layout.node = comm.split_by_node();
  NodesOfRanks nodes = find_nodes(comm, *layout.node);
  layout.node_of_rank = std::move(nodes.node);
  layout.nodes = nodes.count;
  return layout;
}

}  // namespace forebay::bench
