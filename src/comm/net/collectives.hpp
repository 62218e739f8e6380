// Collective operations that wait for their end, over the frames of a group.
//
//   barrier         dissemination: in step k each rank hears from the one 2^k before it
//                   (Hensgen, Finkel and Manber, 1988)
//   broadcast       a binomial tree, in pieces that are passed on as they come
//   all_gather      blocks double in each step (Bruck et al., 1997)
//   all_reduce_sum  each rank adds up one block, in the order of ranks, and sends the sum to all;
//                   few numbers go to all, and each rank adds up all of them. Either way a number
//                   is the sum of the same terms in the same order, on all ranks and in all runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/net/group.hpp"
#include "comm/waiting.hpp"

namespace forebay::net {

// Collective over the group. Throw communication, and what the policy's interrupt throws; nothing
// is written to what was given after they have returned.

void barrier(Group& group, const WaitPolicy& policy);
void broadcast(Group& group, const WaitPolicy& policy, std::span<std::byte> data, int root);
void all_gather(Group& group, const WaitPolicy& policy, std::span<const std::byte> mine,
                std::span<std::byte> all);
std::vector<std::vector<std::byte>> gather(Group& group, const WaitPolicy& policy,
                                           std::span<const std::byte> mine, int root);
void all_reduce_sum(Group& group, const WaitPolicy& policy, std::span<float> values);

/// Longer transfers go in such pieces, so that what comes after them is not held up for long.
inline constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Where `rank` stands in the binomial tree below `root`: its parent (-1: none) and its children,
/// those first that have most to pass on.
struct TreePlace {
  int parent = -1;
  std::vector<int> children;
};
TreePlace tree_place(int rank, int root, int ranks);

/// Part p of `count` elements that are dealt to `parts` as evenly as can be.
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
};
constexpr Share share_of(std::size_t count, std::size_t p, std::size_t parts) {
  return {count / parts * p + count % parts * p / parts,
          count / parts * (p + 1) + count % parts * (p + 1) / parts};
}

}  // namespace forebay::net
