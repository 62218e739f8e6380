#include "read/root_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "comm/node_groups.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

TEST(RootMap, RootsAreNumberedByRank) {
  const RootMap map(StridedOrder(100, 6, 6), {{{0, 2, 4}, {0, 1}}, {{1, 3, 5}, {0, 1}}});
  ASSERT_EQ(map.roots(), 4);  // ranks 0 and 2 of the one group, 1 and 3 of the other
  const WindowPart part{.window = 0, .phase = Phase::whole, .iterations = 1};
  EXPECT_EQ(map.pieces(0, part).front().position, 0U);
  EXPECT_EQ(map.pieces(1, part).front().position, 1U);
}

TEST(RootMap, AllRootsTogetherReadEveryPositionOfAWindowOnce) {
  std::mt19937_64 random(17);
  const auto pick = [&random](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (int round = 0; round < test::random_cases(200); ++round) {
    const int ranks = pick(1, 9);
    const auto batch = static_cast<std::uint64_t>(pick(ranks, 40));
    const auto coalesce = static_cast<std::uint64_t>(pick(1, 5));
    std::vector<RankGroup> groups(static_cast<std::size_t>(pick(1, ranks)));
    for (int rank = 0; rank < ranks; ++rank) {
      // Each group gets one rank, the rest falls anywhere: also interleaved.
      const auto group =
          static_cast<std::size_t>(rank) < groups.size()
              ? static_cast<std::size_t>(rank)
              : static_cast<std::size_t>(pick(0, static_cast<int>(groups.size()) - 1));
      groups[group].ranks.push_back(rank);
    }
    for (RankGroup& group : groups) {
      const int size = static_cast<int>(group.ranks.size());
      group.roots = choose_roots(std::vector(group.ranks.size(), -1), pick(1, std::min(size, 3)));
    }
    const StridedOrder order(1000, ranks, batch, coalesce);
    const RootMap map(order, groups);
    const auto window = static_cast<std::uint64_t>(pick(0, 3));
    std::multiset<std::uint64_t> read;
    for (int root = 0; root < map.roots(); ++root) {
      for (const Piece& piece : map.pieces(root, {window, Phase::whole, coalesce})) {
        for (std::uint64_t i = 0; i < piece.count; ++i) read.insert(piece.position + i);
      }
    }
    ASSERT_EQ(read.size(), batch * coalesce);
    ASSERT_EQ(*read.begin(), window * batch * coalesce);
    ASSERT_EQ(std::set<std::uint64_t>(read.begin(), read.end()).size(), read.size());
  }
}

}  // namespace
}  // namespace forebay
