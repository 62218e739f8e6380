#include "train/solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {
namespace {

TEST(LearningRate, IsConstantWhenFixed) {
  const SolverOptions options{.rate = 0.5, .policy = RatePolicy::fixed};
  EXPECT_EQ(learning_rate(options, 0), 0.5);
  EXPECT_EQ(learning_rate(options, 1'000'000), 0.5);
}

TEST(LearningRate, FallsAtEveryStep) {
  const SolverOptions options{
      .rate = 1, .policy = RatePolicy::step, .gamma = 0.1, .power = 0, .step = 10};
  EXPECT_DOUBLE_EQ(learning_rate(options, 9), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 10), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, 25), 0.01);
}

TEST(LearningRate, FollowsCaffesInversePolicy) {
  const SolverOptions options{
      .rate = 0.01, .policy = RatePolicy::inv, .gamma = 0.0001, .power = 0.75};
  EXPECT_DOUBLE_EQ(learning_rate(options, 0), 0.01);
  EXPECT_NEAR(learning_rate(options, 10'000), 0.01 * 0.5946035575, 1e-10);
}

TEST(Solver, FollowsMomentumAndDecayByHand) {
  Solver solver({.rate = 0.5, .momentum = 0.5, .weight_decay = 0.25}, 1);
  std::vector<float> weight{2};
  const std::vector<float> gradient{1};
  solver.update(weight, gradient, 0);  // v = 0.5 * (1 + 0.25 * 2) = 0.75
  EXPECT_EQ(weight[0], 1.25F);
  solver.update(weight, gradient, 1);  // v = 0.375 + 0.5 * (1 + 0.3125) = 1.03125
  EXPECT_EQ(weight[0], 0.21875F);
  EXPECT_EQ(solver.momentum()[0], 1.03125F);
}

TEST(Solver, GoesOnFromRestoredMomentumWithTheSameNumbers) {
  const SolverOptions options{.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  std::vector<float> straight{1, -2, 3};
  Solver solver(options, straight.size());
  const std::vector<float> gradient{0.3F, 0.1F, -0.7F};
  solver.update(straight, gradient, 0);

  std::vector<float> resumed = straight;
  Solver other(options, resumed.size());
  std::ranges::copy(solver.momentum(), other.momentum().begin());
  solver.update(straight, gradient, 1);
  other.update(resumed, gradient, 1);
  EXPECT_EQ(straight, resumed);
}

TEST(SolverOptions, RefuseWhatCannotTrain) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<SolverOptions> wrong{
      {.rate = 0}, {.rate = -1},    {.rate = nan},          {.gamma = -1},
      {.step = 0}, {.momentum = 1}, {.weight_decay = -0.1}, {.power = nan},
  };
  for (const SolverOptions& options : wrong) EXPECT_THROW(options.validate(), Error);
  EXPECT_NO_THROW(SolverOptions{}.validate());
}

TEST(RatePolicy, ReadsItsOwnNamesAndListsThemForOthers) {
  for (const auto policy : {RatePolicy::fixed, RatePolicy::step, RatePolicy::inv}) {
    EXPECT_EQ(parse_rate_policy(to_string(policy)), policy);
  }
  try {
    parse_rate_policy("cosine");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("fixed, step or inv"));
  }
}

}  // namespace
}  // namespace forebay
