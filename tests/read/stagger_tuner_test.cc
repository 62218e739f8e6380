// The search for the number of roots that read at once, given figures.
#include "read/tuned_stagger.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace forebay {
namespace {

/// Feeds the tuner with rates that depend on n; returns the numbers that it tried.
std::vector<int> tune(StaggerTuner& tuner, const std::function<double(int)>& rate) {
  std::vector<int> tried;
  while (!tuner.settled()) {
    const int group = tuner.group();
    if (tried.empty() || tried.back() != group) tried.push_back(group);
    tuner.add_turn(1000000, 1e6 / rate(group));
  }
  return tried;
}

TEST(StaggerTuner, TriesHalvesDownToOneAndTakesTheFastest) {
  StaggerTuner tuner(12);
  EXPECT_EQ(tune(tuner, [](int n) { return n == 3 ? 200.0 : 100.0; }),
            (std::vector<int>{12, 6, 3, 1}));
  EXPECT_EQ(tuner.group(), 3);
}

TEST(StaggerTuner, HoldsNobodyBackWithoutAClearGain) {
  StaggerTuner tuner(8);
  tune(tuner, [](int n) { return n == 8 ? 100.0 : 102.0; });
  EXPECT_EQ(tuner.group(), 8);
}

TEST(StaggerTuner, IgnoresTheFirstTurn) {
  StaggerTuner tuner(4, 1);
  tuner.add_turn(1, 1000);
  EXPECT_EQ(tuner.group(), 4);
  tuner.add_turn(1000, 1);
  tuner.add_turn(10, 1);
  tuner.add_turn(10, 1);
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.group(), 4);
}

TEST(StaggerTuner, NothingReadIsNoProgress) {
  StaggerTuner tuner(2);
  for (int turn = 0; turn < 5; ++turn) tuner.add_turn(0, 0);
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.group(), 2);
}

TEST(StaggerTuner, OneRootHasNothingToFind) {
  EXPECT_TRUE(StaggerTuner(1).settled());
  EXPECT_EQ(StaggerTuner(1).group(), 1);
}

TEST(StaggerTuner, StoppedItLetsAllRead) {
  StaggerTuner tuner(8);
  for (int turn = 0; turn < 4; ++turn) tuner.add_turn(1, 1);
  tuner.stop();
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.group(), 8);
}

}  // namespace
}  // namespace forebay
