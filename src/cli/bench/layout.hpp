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

/// One plain value of every rank, on all ranks. Collective.
template <typename T>
std::vector<T> from_all(Communicator& comm, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace forebay::bench
