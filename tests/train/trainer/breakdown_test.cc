#include "train/breakdown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace forebay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Breakdown rank_with(double forward, double total, std::uint64_t images) {
  Breakdown rank;
  rank[Phase::forward] = forward;
  rank.images = images;
  rank.close(total);
  return rank;
}

TEST(Breakdown, OtherIsWhatNoPhaseExplains) {
  const Breakdown rank = rank_with(3, 10, 0);
  EXPECT_DOUBLE_EQ(rank[Phase::other], 7);
  EXPECT_DOUBLE_EQ(rank.total, 10);
}

TEST(Breakdown, OtherIsNeverNegative) { EXPECT_EQ(rank_with(3, 2.9, 0)[Phase::other], 0); }

TEST(Breakdown, ImagesPerSecondFollowTheSlowestRankWithoutItsTests) {
  std::vector<Breakdown> ranks{rank_with(1, 5, 100), rank_with(1, 12, 100)};
  ranks[1][Phase::test] = 2;
  EXPECT_DOUBLE_EQ(images_per_second(ranks), 20);
  EXPECT_EQ(images_per_second({}), 0);
}

TEST(Breakdown, TableNamesEveryPhaseAndRank) {
  const std::vector<Breakdown> ranks{rank_with(1, 2, 10), rank_with(3, 4, 10)};
  const std::string table = to_table(ranks);
  for (const char* name : {"read", "skew", "decode", "forward", "backward", "parameter sync",
                           "update", "test", "other", "total", "images/s", "rank 1"}) {
    EXPECT_THAT(table, HasSubstr(name));
  }
}

TEST(Breakdown, TableOfManyRanksShowsTheRange) {
  const std::string table = to_table(std::vector<Breakdown>(64, rank_with(1, 2, 10)));
  EXPECT_THAT(table, HasSubstr("least"));
  EXPECT_THAT(table, Not(HasSubstr("rank 63")));
}

}  // namespace
}  // namespace forebay
