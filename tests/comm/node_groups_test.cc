#include "comm/node_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {
namespace {

TEST(NodeGroups, RootsAreDistinctAndTheFirstRankIsOne) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    for (int domains = 1; domains <= 5; ++domains) {
      std::vector<int> domain(static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank)
        domain[static_cast<std::size_t>(rank)] = rank % domains;
      for (int roots = 1; roots <= ranks; ++roots) {
        const auto chosen = choose_roots(domain, roots);
        ASSERT_EQ(chosen.size(), static_cast<std::size_t>(roots));
        EXPECT_EQ(std::set<int>(chosen.begin(), chosen.end()).size(), chosen.size());
        EXPECT_TRUE(std::ranges::is_sorted(chosen));
        EXPECT_EQ(chosen.front(), 0);
        EXPECT_LT(chosen.back(), ranks);
      }
    }
  }
}

TEST(NodeGroups, EveryNumaNodeGetsARootBeforeAnyGetsASecond) {
  EXPECT_EQ(choose_roots(std::vector{0, 0, 0, 0, 1, 1, 1, 1}, 2), (std::vector{0, 4}));
  EXPECT_EQ(choose_roots(std::vector{0, 0, 0, 0, 0, 0, 1, 1}, 2), (std::vector{0, 6}));
  EXPECT_EQ(choose_roots(std::vector{1, 0, 1, 0}, 2), (std::vector{0, 1}));
  EXPECT_EQ(choose_roots(std::vector{0, 0, 0, 0, 1, 1, 1, 1}, 4), (std::vector{0, 2, 4, 6}));
}

TEST(NodeGroups, RanksThatAreNotBoundAreTakenEvenly) {
  EXPECT_EQ(choose_roots(std::vector(8, -1), 2), (std::vector{0, 4}));
  EXPECT_EQ(choose_roots(std::vector(9, -1), 3), (std::vector{0, 3, 6}));
}

TEST(NodeGroups, OneRootUpTo16RanksTwoAboveUnlessToldOtherwise) {
  EXPECT_EQ(root_count(1, 0), 1);
  EXPECT_EQ(root_count(16, 0), 1);
  EXPECT_EQ(root_count(17, 0), 2);
  EXPECT_EQ(root_count(36, 4), 4);
  EXPECT_EQ(root_count(3, 8), 3);
}

TEST(NodeGroups, TheEnvironmentIsCheckedLikeAnyInput) {
  setenv("FOREBAY_RANKS_PER_NODE", "3", 1);
  EXPECT_EQ(ranks_per_node_from_environment(), 3);
  for (const char* wrong : {"0", "-1", "two", "2x", "99999999999"}) {
    setenv("FOREBAY_RANKS_PER_NODE", wrong, 1);
    EXPECT_THROW(ranks_per_node_from_environment(), Error) << wrong;
  }
  unsetenv("FOREBAY_RANKS_PER_NODE");
  EXPECT_EQ(ranks_per_node_from_environment(), 0);
}

}  // namespace
}  // namespace forebay
