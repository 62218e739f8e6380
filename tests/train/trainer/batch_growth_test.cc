#include "train/solver.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr GrowthOptions kOptions{.threshold = 1e-4, .limit = 4, .warmup = 10};

TEST(BatchGrowth, DoublesWhenAnIterationGainsLessThanTheThreshold) {
  GrowthState state;
  EXPECT_FALSE(take_test(state, kOptions, 0.50, 100));  // nothing to compare with
  EXPECT_FALSE(take_test(state, kOptions, 0.60, 200));
  EXPECT_TRUE(take_test(state, kOptions, 0.605, 300));
  EXPECT_EQ(state.factor, 2U);
  EXPECT_FALSE(take_test(state, kOptions, 0.65, 350));
  EXPECT_TRUE(take_test(state, kOptions, 0.64, 400));  // what is lost is no gain
  EXPECT_EQ(state.factor, 4U);
}

TEST(BatchGrowth, EndsAtItsLimit) {
  GrowthState state;
  for (std::uint64_t test = 1; test < 10; ++test) take_test(state, kOptions, 0.5, 100 * test);
  EXPECT_EQ(state.factor, 4U);
  GrowthState odd;
  for (std::uint64_t test = 1; test < 10; ++test) {
    take_test(odd, {.threshold = 0.1, .limit = 7}, 0.5, 100 * test);
  }
  EXPECT_EQ(odd.factor, 4U);
}

TEST(BatchGrowth, WithoutAThresholdNothingGrows) {
  GrowthState state;
  for (std::uint64_t test = 1; test < 10; ++test) take_test(state, {}, 0.5, 100 * test);
  EXPECT_EQ(state.factor, 1U);
  EXPECT_EQ(rate_factor(state, {}, 1000), 1);
}

TEST(BatchGrowth, TheLearningRateClimbsFromTheOldOne) {
  const GrowthState state{.factor = 4, .grown_at = 300, .tested_at = 300, .accuracy = 0.5};
  EXPECT_DOUBLE_EQ(rate_factor(state, kOptions, 300), 2);
  EXPECT_DOUBLE_EQ(rate_factor(state, kOptions, 305), 3);
  EXPECT_DOUBLE_EQ(rate_factor(state, kOptions, 310), 4);
  EXPECT_DOUBLE_EQ(rate_factor(state, kOptions, 5000), 4);
  EXPECT_DOUBLE_EQ(rate_factor(state, {.threshold = 0.1, .warmup = 0}, 300), 4);
}

TEST(BatchGrowth, RefusesWhatMeansNothing) {
  EXPECT_THROW((GrowthOptions{.threshold = std::numeric_limits<double>::quiet_NaN()}.validate()),
               Error);
  EXPECT_THROW((GrowthOptions{.threshold = 0.1, .limit = 0}.validate()), Error);
  EXPECT_NO_THROW(kOptions.validate());
}

}  // namespace
}  // namespace forebay
