#include "read/window_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "tests/support/scale.hpp"

namespace forebay {
namespace {

/// Everything that the roots of `plan` read in a window: entry -> position.
std::map<std::uint64_t, std::uint64_t> read_by_roots(const WindowPlan& plan, std::uint64_t window,
                                                     std::uint64_t iterations, Phase phase) {
  std::map<std::uint64_t, std::uint64_t> read;
  for (int root = 0; root < plan.roots(); ++root) {
    for (const Piece& piece : plan.pieces(root, {window, phase, iterations})) {
      for (std::uint64_t k = 0; k < piece.count; ++k) {
        EXPECT_TRUE(read.emplace(piece.entry + k, piece.position + k).second) << "read twice";
      }
    }
  }
  return read;
}

/// What the ranks will look at in the iterations [from, to) of the window.
std::map<std::uint64_t, std::uint64_t> wanted_by_ranks(const WindowPlan& plan,
                                                       const std::vector<int>& ranks,
                                                       std::uint64_t window, std::uint64_t from,
                                                       std::uint64_t to) {
  std::map<std::uint64_t, std::uint64_t> wanted;
  const StridedOrder& order = plan.order();
  for (std::size_t local = 0; local < ranks.size(); ++local) {
    for (std::uint64_t t = from; t < to; ++t) {
      const std::uint64_t iteration = window * plan.iterations() + t;
      const Run run = order.run(ranks[local], iteration);
      for (std::uint64_t k = 0; k < run.count; ++k) {
        wanted.emplace(plan.entry(static_cast<int>(local), iteration, k), run.first + k);
      }
    }
  }
  return wanted;
}

TEST(WindowPlan, RootsReadExactlyWhatRanksTakeIterationZeroFirst) {
  std::mt19937_64 random(11);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  for (int round = 0; round < test::random_cases(300); ++round) {
    const int ranks = static_cast<int>(pick(1, 9));
    const StridedOrder order(pick(1, 200), ranks, pick(ranks, 60), pick(1, 6), {pick(0, 50)});
    const int first = static_cast<int>(pick(0, ranks - 1));
    std::vector<int> here(static_cast<std::size_t>(pick(1, ranks - first)));
    std::iota(here.begin(), here.end(), first);
    const WindowPlan plan(order, here, static_cast<int>(pick(1, here.size())), pick(1, 4));
    const std::uint64_t window = pick(0, 4);
    const std::uint64_t iterations = pick(1, plan.iterations());
    EXPECT_EQ(read_by_roots(plan, window, iterations, Phase::first),
              wanted_by_ranks(plan, here, window, 0, 1));
    EXPECT_EQ(read_by_roots(plan, window, iterations, Phase::rest),
              wanted_by_ranks(plan, here, window, 1, iterations));
    EXPECT_EQ(read_by_roots(plan, window, iterations, Phase::whole),
              wanted_by_ranks(plan, here, window, 0, iterations));
  }
}

TEST(WindowPlan, ThePlainOrderOfAWholeNodeIsOneRun) {
  const WindowPlan plan(StridedOrder(1000, 8, 64), {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  EXPECT_EQ(plan.pieces(0, {3, Phase::first, 1}), (std::vector<Piece>{{192, 64, 0}}));
  EXPECT_TRUE(plan.pieces(0, {3, Phase::rest, 1}).empty());
}

TEST(WindowPlan, WindowsOfAWholeNodeThatAreReadTogetherAreOneRun) {
  const WindowPlan plan(StridedOrder(1000, 2, 20, 2), {0, 1}, 1, 3);
  EXPECT_EQ(plan.iterations(), 6U);
  EXPECT_EQ(plan.pieces(0, {1, Phase::whole, 6}), (std::vector<Piece>{{120, 120, 0}}));
  EXPECT_EQ(plan.pieces(0, {1, Phase::whole, 5}),
            (std::vector<Piece>{{120, 90, 0}, {220, 10, 100}}));
}

TEST(WindowPlan, CoalescedIterationsOfARankAreOneRun) {
  const WindowPlan plan(StridedOrder(1000, 2, 20, 5), {1}, 1);
  EXPECT_EQ(plan.pieces(0, {0, Phase::first, 5}), (std::vector<Piece>{{50, 10, 0}}));
  EXPECT_EQ(plan.pieces(0, {0, Phase::rest, 5}), (std::vector<Piece>{{60, 40, 10}}));
}

}  // namespace
}  // namespace forebay
