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

TEST(StaggerTuner, TriesTheSquareRootAndHalfOfItAndTakesTheFastest) {
  const auto at = [](int best) { return [best](int n) { return n == best ? 200.0 : 100.0 / n; }; };
  StaggerTuner tuner(12);
  EXPECT_EQ(tune(tuner, at(3)), (std::vector<int>{12, 3, 1}));
  EXPECT_EQ(tuner.group(), 3);
  StaggerTuner large(100);
  EXPECT_EQ(tune(large, [](int n) { return 1000.0 / n; }), (std::vector<int>{100, 10, 5}));
  EXPECT_EQ(large.group(), 5);
}

TEST(StaggerTuner, HoldsNobodyBackWithoutAClearGain) {
  StaggerTuner tuner(8);
  tune(tuner, [](int n) { return n == 8 ? 100.0 : 104.0; });
  EXPECT_EQ(tuner.group(), 8);
}

TEST(StaggerTuner, LooksNoFurtherThanWhatIsSlower) {
  StaggerTuner tuner(16);
  EXPECT_EQ(tune(tuner, [](int n) { return n == 2 ? 1000.0 : 100.0 * n; }),
            (std::vector<int>{16, 4}));
  EXPECT_EQ(tuner.group(), 16);
}

TEST(StaggerTuner, GoesOnWhereTheFirstGuessChangesNothing) {
  StaggerTuner tuner(16);
  EXPECT_EQ(tune(tuner, [](int n) { return n == 2 ? 200.0 : 100.0; }),
            (std::vector<int>{16, 4, 2}));
  EXPECT_EQ(tuner.group(), 2);
}

TEST(StaggerTuner, BeginsWithTheNumberOfServers) {
  const auto fewer = [](int n) { return 1000.0 / n; };
  StaggerTuner tuner(100, 24);
  EXPECT_EQ(tune(tuner, fewer), (std::vector<int>{100, 24, 12}));
  StaggerTuner many(9, 24);
  EXPECT_EQ(tune(many, fewer), (std::vector<int>{9, 3, 1})) << "more servers than roots";
}

TEST(StaggerTuner, SettlesInThreeTurnsAfterTheFirst) {
  for (int roots = 2; roots < 5000; ++roots) {
    StaggerTuner tuner(roots);
    int turns = 0;
    for (; !tuner.settled(); ++turns) {
      ASSERT_GE(tuner.group(), 1);
      ASSERT_LE(tuner.group(), roots);
      tuner.add_turn(1000, tuner.group());
    }
    ASSERT_LE(turns, 3) << roots;
    ASSERT_LT(tuner.group(), roots);
  }
}

TEST(StaggerTuner, BeginsAnewWhereWindowsGrow) {
  StaggerTuner tuner(16);
  // Fewer are slower in the small windows that a run begins with, and faster in whole ones.
  for (const std::uint64_t bytes : {1, 1, 2, 4, 8})
    tuner.add_turn(bytes * 1000, bytes == 2 ? 9 : 1);
  EXPECT_FALSE(tuner.settled());
  EXPECT_EQ(tune(tuner, [](int n) { return n == 4 ? 200.0 : 100.0; }),
            (std::vector<int>{16, 4, 2}));
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
  tuner.add_turn(1, 1);
  tuner.stop();
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.group(), 8);
}

}  // namespace
}  // namespace forebay
