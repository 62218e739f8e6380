// The graph of one training iteration, from which `topo` works out the order of its transfers:
//
//   forward a -> forward b -> forward c
//                                 |
//   backward a <- backward b <- backward c        one of each for every part of the network
//       |             |             |
//      [a]           [b]           [c]            transfers, none of which needs another
//       |             |             |
//   update a      update b      update c          the fetches
//
// What is behind the gradients (Network::tail) is known after the last of the backward pass.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "forebay/graph.hpp"
#include "forebay/sync.hpp"
#include "train/network.hpp"

namespace forebay {

/// Statistics, loss and weight, behind the gradients.
inline constexpr const char* kTailName = "statistics, loss and weight";

/// The tensors of an iteration: the gradients of all parts, and the tail.
std::vector<TensorSpec> tensors_of(Network& network);

struct NetworkGraph {
  Graph graph;
  std::vector<std::string> updates;
};
NetworkGraph graph_of(Network& network);

}  // namespace forebay
