// A run that stops anywhere and goes on with other ranks and batches takes every position of the
// order exactly once. The model keeps a plain list of what is left, and strikes out what is taken.
// (forebay::Run is spelled out: a test body also knows testing::Test::Run.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/order.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + engine_() % (high - low + 1);
  }

 private:
  std::mt19937_64 engine_;
};

/// One run, stretch by stretch: the order under test beside the list of what is left.
class ResumedRun {
 public:
  ResumedRun(std::uint64_t entries, std::uint64_t positions)
      : entries_(entries), left_(positions), times_(positions) {
    std::iota(left_.begin(), left_.end(), 0);
  }

  StridedOrder order(int ranks, std::uint64_t batch, std::uint64_t coalesce) const {
    return StridedOrder(entries_, ranks, batch, coalesce, {start_, partial_});
  }

  /// Takes `iterations` iterations, and checks that they are what the list says.
  void take(const StridedOrder& order, std::uint64_t iterations) {
    std::vector<bool> taken(left_.size());
    for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
      for (int rank = 0; rank < order.ranks(); ++rank) {
        const forebay::Run run = order.run(rank, iteration);
        for (std::uint64_t g = run.first; g < run.first + run.count; ++g) {
          ASSERT_LT(g - start_, left_.size()) << "the model is too small";
          ASSERT_EQ(order.global(g), left_[g - start_]);
          ASSERT_EQ(order.sample(g), left_[g - start_] % entries_);
          ASSERT_EQ(order.epoch(g), left_[g - start_] / entries_);
          taken[g - start_] = true;
          ++times_[order.global(g)];
        }
      }
    }
    std::vector<std::uint64_t> rest;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (!taken[i]) rest.push_back(left_[i]);
    }
    left_ = std::move(rest);
    const std::uint64_t within = iterations % order.coalesce();
    if (within > 0) {
      partial_.push_back({.begin = start_ + (iterations - within) * order.batch(),
                          .ranks = order.ranks(),
                          .batch = order.batch(),
                          .coalesce = order.coalesce(),
                          .iterations = within});
    }
    start_ += iterations * order.batch();
  }

  std::uint64_t start() const { return start_; }
  /// The global positions that nobody has taken, ascending.
  const std::vector<std::uint64_t>& left() const { return left_; }
  /// How often each global position was taken.
  const std::vector<int>& times() const { return times_; }

 private:
  std::uint64_t entries_;
  std::vector<std::uint64_t> left_;
  std::vector<int> times_;
  std::uint64_t start_ = 0;
  std::vector<PartialWindow> partial_;
};

constexpr std::uint64_t kPositions = 6000;  // more than all stretches of a test take

StridedOrder random_order(const ResumedRun& run, Draw& draw) {
  const int ranks = static_cast<int>(draw.between(1, 9));
  const std::uint64_t batch = draw.between(static_cast<std::uint64_t>(ranks), 20);
  return run.order(ranks, batch, draw.between(1, 9));
}

/// Stops at random, mostly inside a window, often inside one that others have left already.
ResumedRun random_run(std::uint64_t entries, Draw& draw) {
  ResumedRun run(entries, kPositions);
  for (std::uint64_t stretch = draw.between(1, 5); stretch > 0; --stretch) {
    const StridedOrder order = random_order(run, draw);
    run.take(order, draw.between(0, draw.between(0, 2) == 0 ? 25 : 6));
  }
  return run;
}

TEST(PartialWindow, EveryPositionIsTakenOnceWhereverARunStops) {
  Draw draw(1);
  for (int round = 0; round < test::long_cases(1500) && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t entries = draw.between(1, 200);
    ResumedRun run = random_run(entries, draw);
    const StridedOrder rest = random_order(run, draw);
    const std::uint64_t epochs = run.start() / entries + draw.between(0, 3);
    const std::uint64_t wanted = epochs * entries;
    const bool missing = run.left().front() < wanted;
    const std::uint64_t iterations = rest.iterations(epochs);
    ASSERT_EQ(iterations > 0, missing);
    if (missing) {
      ResumedRun fewer = run;
      fewer.take(rest, iterations - 1);
      EXPECT_LT(fewer.left().front(), wanted) << "the last iteration is needed";
    }
    run.take(rest, iterations);
    EXPECT_GE(run.left().front(), wanted);
    EXPECT_TRUE(std::all_of(run.times().begin(), run.times().begin() + wanted,
                            [](int times) { return times == 1; }));
    EXPECT_LE(*std::ranges::max_element(run.times()), 1) << "behind the last epoch";
  }
}

TEST(PartialWindow, ConsecutivePositionsStandForConsecutiveOnes) {
  Draw draw(2);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const ResumedRun run = random_run(draw.between(1, 200), draw);
    const StridedOrder order = random_order(run, draw);
    const std::uint64_t end = order.start() + 1000;
    std::uint64_t cuts = 0;
    for (std::uint64_t g = order.start(); g < end; ++cuts) {
      const std::uint64_t count = std::min(order.consecutive(g), end - g);
      ASSERT_GE(count, 1U);
      for (std::uint64_t k = 0; k < count; ++k) ASSERT_EQ(order.global(g + k), order.global(g) + k);
      g += count;
    }
    EXPECT_LE(cuts, 5U * 9 + 1) << "a rank of an earlier stretch each, at most";
  }
}

TEST(PartialWindow, BehindWhatWasLeftPositionsStandForThemselves) {
  // 2 ranks took the first of 3 iterations of 4 samples: 0 1 and 6 7 of 0..11.
  const PartialWindow window{.begin = 0, .ranks = 2, .batch = 4, .coalesce = 3, .iterations = 1};
  const StridedOrder order(100, 3, 6, 1, {4, {window}});
  std::vector<std::uint64_t> globals;
  for (std::uint64_t g = 4; g < 14; ++g) globals.push_back(order.global(g));
  EXPECT_EQ(globals, (std::vector<std::uint64_t>{2, 3, 4, 5, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(order.consecutive(4), 4U);
  EXPECT_EQ(order.consecutive(7), 1U);
  EXPECT_EQ(order.consecutive(12), UINT64_MAX);
  EXPECT_EQ(StridedOrder(6, 1, 2, 1, {4, {window}}).iterations(1), 2U) << "2 3 4 5 are left of 6";
}

TEST(PartialWindow, LargeNumbersDoNotOverflow) {
  const std::uint64_t begin = (std::uint64_t{1} << 62) - (std::uint64_t{1} << 40);
  const PartialWindow window{.begin = begin,
                             .ranks = (1 << 30) - 1,
                             .batch = std::uint64_t{1} << 32,
                             .coalesce = 256,
                             .iterations = 100};
  const std::uint64_t first = begin + window.iterations * window.batch;
  const std::uint64_t end = begin + window.coalesce * window.batch;
  const StridedOrder order(std::uint64_t{1} << 48, 7, 100, 1, {first, {window}});
  EXPECT_EQ(order.global(first), begin + 400) << "rank 0 took 4 at each of 100 iterations";
  EXPECT_EQ(order.global(end - 1), end - 1);
  EXPECT_EQ(order.global(end), end);
  Draw draw(3);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t g = draw.between(first, end - 2);
    ASSERT_LT(order.global(g), order.global(g + 1));
    ASSERT_EQ(order.global(g) + 1 == order.global(g + 1), order.consecutive(g) > 1);
  }
}

TEST(PartialWindow, NonsenseIsRefused) {
  const auto refused = [](const std::vector<PartialWindow>& windows) {
    EXPECT_THROW(StridedOrder(10, 1, 1, 1, {100, windows}), Error);
  };
  EXPECT_NO_THROW(StridedOrder(10, 1, 1, 1, {100, {{80, 2, 4, 5, 3}, {92, 2, 4, 5, 2}}}));
  refused({{80, 0, 4, 5, 3}});
  refused({{80, 5, 4, 5, 3}});
  refused({{80, 2, 4, 0, 0}});
  refused({{80, 2, 4, 5, 0}});
  refused({{80, 2, 4, 5, 5}});
  refused({{96, 2, 4, 5, 3}});
  refused({{UINT64_MAX, 2, 4, 5, 3}});
  refused({{80, 2, std::uint64_t{1} << 33, 5, 3}});
  refused({{80, 2, 4, std::uint64_t{1} << 39, 3}});
  refused({{80, 2, 4, 5, 3}, {91, 2, 4, 5, 2}});
}

}  // namespace
}  // namespace forebay
