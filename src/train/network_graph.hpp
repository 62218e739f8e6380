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
// What is behind the gradients (Network::tail) is known when the backward pass has ended.
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

/// The gradient of each part.
std::vector<TensorSpec> tensors_of(const Network& network);
/// Network::tail.
TensorSpec tail_of(Network& network);

/// `behind`: what is known when the backward pass has ended. The updates are fetched.
GraphFile graph_of(const Network& network, std::span<const TensorSpec> behind);

}  // namespace forebay
