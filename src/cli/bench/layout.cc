#include "cli/bench/layout.hpp"

#include <algorithm>

namespace forebay::bench {

Layout find_layout(Communicator& comm) {
  Layout layout;
  layout.node = comm.split_by_node();
  int leader = comm.rank();
  layout.node->broadcast(std::as_writable_bytes(std::span(&leader, 1)), 0);
  const std::vector<int> leaders = from_all(comm, leader);
  std::vector<int> known;
  for (const int of_rank : leaders) {
    const auto found = std::ranges::find(known, of_rank);
    layout.node_of_rank.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(of_rank);
  }
  layout.nodes = static_cast<int>(known.size());
  return layout;
}

}  // namespace forebay::bench
