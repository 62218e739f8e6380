#include "comm/node_groups.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "forebay/error.hpp"

namespace forebay {
namespace {

TEST(NodeGroups, RootsAreDistinctAndTheFirstRankIsOne) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    for (int roots = 1; roots <= ranks; ++roots) {
      std::set<int> chosen;
      for (int root = 0; root < roots; ++root) {
        const int rank = root_rank(root, roots, ranks);
        EXPECT_EQ(root_of_rank(rank, roots, ranks), root);
        chosen.insert(rank);
      }
      EXPECT_EQ(chosen.size(), static_cast<std::size_t>(roots));
      EXPECT_TRUE(chosen.contains(0));
      EXPECT_LT(*chosen.rbegin(), ranks);
    }
  }
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
