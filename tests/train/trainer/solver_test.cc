#include "train/solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {
namespace {

TEST(LearningRate, IsConstantWhenFixed) {
  const SolverOptions options{.rate = 0.5, .policy = RatePolicy::fixed};
  EXPECT_EQ(learning_rate(options, {0, 0}), 0.5);
  EXPECT_EQ(learning_rate(options, {1'000'000, 0}), 0.5);
}

TEST(LearningRate, FallsAtEveryStep) {
  const SolverOptions options{
      .rate = 1, .policy = RatePolicy::step, .gamma = 0.1, .power = 0, .step = 10};
  EXPECT_DOUBLE_EQ(learning_rate(options, {9, 0}), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, {10, 0}), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, {25, 0}), 0.01);
}

TEST(LearningRate, FollowsCaffesInversePolicy) {
  const SolverOptions options{
      .rate = 0.01, .policy = RatePolicy::inv, .gamma = 0.0001, .power = 0.75};
  EXPECT_DOUBLE_EQ(learning_rate(options, {0, 0}), 0.01);
  EXPECT_NEAR(learning_rate(options, {10'000, 0}), 0.01 * 0.5946035575, 1e-10);
}

TEST(LearningRate, FallsAfterTheEpochsThatAreNamed) {
  const SolverOptions options{
      .rate = 1, .policy = RatePolicy::epochs, .gamma = 0.1, .drops = {50, 75}};
  EXPECT_DOUBLE_EQ(learning_rate(options, {9000, 49}), 1);
  EXPECT_DOUBLE_EQ(learning_rate(options, {9001, 50}), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(options, {20'000, 75}), 0.01);
}

TEST(Solver, FollowsMomentumAndDecayByHand) {
  Solver solver({.rate = 0.5, .momentum = 0.5, .weight_decay = 0.25}, 1);
  std::vector<float> weight{2};
  const std::vector<float> gradient{1};
  solver.update(weight, gradient, {0, 0});  // v = 0.5 * (1 + 0.25 * 2) = 0.75
  EXPECT_EQ(weight[0], 1.25F);
  solver.update(weight, gradient, {1, 0});  // v = 0.375 + 0.5 * (1 + 0.3125) = 1.03125
  EXPECT_EQ(weight[0], 0.21875F);
  EXPECT_EQ(solver.state()[0], 1.03125F);
}

TEST(Solver, AdamFollowsItsPaperByHand) {
  Solver solver({.kind = SolverKind::adam,
                 .rate = 0.5,
                 .momentum = 0.5,
                 .weight_decay = 0,
                 .squares = 0.75,
                 .epsilon = 1e-8},
                1);
  std::vector<float> weight{2};
  // The first step is the rate, whatever the gradient.
  solver.update(weight, std::vector<float>{4}, {0, 0});
  EXPECT_NEAR(weight[0], 1.5, 1e-6);
  // m = 0.5 * 2 + 0.5 * 1 = 1.5, / 0.75 = 2; v = 0.75 * 4 + 0.25 = 3.25, / 0.4375 = 7.42857
  solver.update(weight, std::vector<float>{1}, {1, 0});
  EXPECT_NEAR(weight[0], 1.5 - 0.5 * 2 / std::sqrt(3.25 / 0.4375), 1e-6);
  EXPECT_THAT(solver.state(), testing::ElementsAre(1.5F, 3.25F));
}

TEST(Solver, AdamGoesOnFromARestoredStateWithTheSameNumbers) {
  const SolverOptions options{.kind = SolverKind::adam, .rate = 0.1, .weight_decay = 0.01};
  std::vector<float> straight{1, -2, 3};
  Solver solver(options, straight.size());
  const std::vector<float> gradient{0.3F, 0.1F, -0.7F};
  solver.update(straight, gradient, {0, 0});

  std::vector<float> resumed = straight;
  Solver other(options, resumed.size());
  ASSERT_EQ(solver.state().size(), 6U);
  std::ranges::copy(solver.state(), other.state().begin());
  solver.update(straight, gradient, {1, 0});
  other.update(resumed, gradient, {1, 0});
  EXPECT_EQ(straight, resumed);
}

TEST(Solver, GoesOnFromRestoredMomentumWithTheSameNumbers) {
  const SolverOptions options{.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  std::vector<float> straight{1, -2, 3};
  Solver solver(options, straight.size());
  const std::vector<float> gradient{0.3F, 0.1F, -0.7F};
  solver.update(straight, gradient, {0, 0});

  std::vector<float> resumed = straight;
  Solver other(options, resumed.size());
  std::ranges::copy(solver.state(), other.state().begin());
  solver.update(straight, gradient, {1, 0});
  other.update(resumed, gradient, {1, 0});
  EXPECT_EQ(straight, resumed);
}

TEST(SolverOptions, RefuseWhatCannotTrain) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<SolverOptions> wrong{
      {.rate = 0},
      {.rate = -1},
      {.rate = nan},
      {.gamma = -1},
      {.step = 0},
      {.momentum = 1},
      {.weight_decay = -0.1},
      {.power = nan},
      {.squares = 1},
      {.epsilon = 0},
      {.policy = RatePolicy::epochs, .drops = {}},
      {.policy = RatePolicy::epochs, .drops = {5, 3}},
  };
  for (const SolverOptions& options : wrong) EXPECT_THROW(options.validate(), Error);
  EXPECT_NO_THROW(SolverOptions{}.validate());
}

TEST(SolverKind, ReadsItsOwnNamesAndListsThemForOthers) {
  for (const auto kind : {SolverKind::sgd, SolverKind::adam}) {
    EXPECT_EQ(parse_solver_kind(to_string(kind)), kind);
  }
  EXPECT_THROW(parse_solver_kind("lbfgs"), Error);
}

TEST(RatePolicy, ReadsItsOwnNamesAndListsThemForOthers) {
  for (const auto policy :
       {RatePolicy::fixed, RatePolicy::step, RatePolicy::inv, RatePolicy::epochs}) {
    EXPECT_EQ(parse_rate_policy(to_string(policy)), policy);
  }
  try {
    parse_rate_policy("cosine");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("fixed, step, inv or epochs"));
  }
}

}  // namespace
}  // namespace forebay
