// The randomization level: the papers' figures, the formula term by term, and what the drawn orders
// really do.
#include "forebay/randomization.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "forebay/error.hpp"
#include "order/smooth_sum.hpp"
#include "tests/order/order_cases.hpp"

namespace forebay {
namespace {

double percent(const OrderOptions& options) { return 100 * *randomization_level(options); }

OrderOptions in_memory(std::uint64_t entries, double ratio, std::uint64_t group = 0) {
  OrderOptions options{.order = OrderName::in_memory, .entries = entries, .batch = 8};
  options.ratio = ratio;
  options.group = group;
  return options;
}

OrderOptions kept(std::uint64_t entries, std::uint64_t keep) {
  OrderOptions options{.order = OrderName::shuffled, .entries = entries, .batch = 8};
  options.keep = keep;
  return options;
}

OrderOptions grouped(std::uint64_t entries, std::uint64_t group, int ranks) {
  return {.order = OrderName::grouped,
          .entries = entries,
          .ranks = ranks,
          .batch = static_cast<std::uint64_t>(ranks),
          .group = group};
}

/// Term by term, for P(i) as a function of i.
double level(std::uint64_t entries, const std::function<double(std::uint64_t)>& chance) {
  double h = 0, full = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const double left = static_cast<double>(entries - i);
    h += std::log2(1 / chance(i)) / left;
    full += std::log2(left) / left;
  }
  return 100 * h / full;
}

TEST(RandomizationLevel, HasTheFiguresOfDeepIo) {
  EXPECT_NEAR(percent(in_memory(7600, 0.5)), 98.54, 0.005);
  EXPECT_NEAR(percent(in_memory(7600, 0.25)), 96.96, 0.005);
  EXPECT_NEAR(percent(kept(7600, 4)), 72.4, 0.05);
  EXPECT_NEAR(percent(kept(7600, 16)), 48.8, 0.05);
  EXPECT_NEAR(percent(kept(7600, 256)), 15.6, 0.05);
  EXPECT_NEAR(percent(in_memory(7600, 1)), 100, 1e-7);
  EXPECT_NEAR(percent(kept(7600, 1)), 100, 1e-7);
  EXPECT_NEAR(percent(kept(7600, 7600)), 0, 1e-9) << "a constant order";
}

TEST(RandomizationLevel, IsTheFormulaTermByTerm) {
  for (const std::uint64_t entries : {2, 10, 999, 50'000}) {
    for (const std::uint64_t keep : {1, 2, 3, 7}) {
      if (keep > entries) continue;
      const double expected = level(entries, [&](std::uint64_t i) {
        return 1 / std::ceil(static_cast<double>(entries - i) / static_cast<double>(keep));
      });
      EXPECT_NEAR(percent(kept(entries, keep)), expected, 1e-5) << entries << " " << keep;
    }
  }
  for (const std::uint64_t group : {1, 10, 100}) {
    for (const std::uint64_t units : {1, 3, 30}) {
      const std::uint64_t entries = 30'000, memory = group * units, files = entries / group;
      const double expected = level(entries, [&](std::uint64_t i) {
        const std::uint64_t round = i / memory;
        return static_cast<double>(units) / static_cast<double>(files - units * round) /
               static_cast<double>(memory - i % memory);
      });
      const double ratio = static_cast<double>(memory) / static_cast<double>(entries);
      EXPECT_NEAR(percent(in_memory(entries, ratio + 1e-9, group)), expected, 1e-5);
      EXPECT_NEAR(percent(grouped(entries, group, static_cast<int>(units))), expected, 1e-5);
    }
  }
}

TEST(RandomizationLevel, TakesNoTimeForManySamples) {
  const std::uint64_t many = std::uint64_t{1} << 40;
  EXPECT_GT(percent(in_memory(many, 0.25)), 98);
  EXPECT_LT(percent(in_memory(many, 0.25)), 100);
  EXPECT_GT(percent(kept(many, 4)), 90);
  EXPECT_GT(percent(grouped(many, 1000, 64)), 40);
  EXPECT_LT(percent(grouped(many, 1000, 64)), 100);
}

TEST(RandomizationLevel, SumsAreRightWhereverTheyAreCut) {
  for (const std::uint64_t last : {1, 511, 2047, 2048, 2049, 5000, 1'000'000}) {
    double expected = 0;
    for (std::uint64_t i = 1; i <= last; ++i) {
      expected += std::log2(static_cast<double>(i)) / static_cast<double>(i);
    }
    const double sum = smooth_sum(1, last, [](double i) { return std::log2(i) / i; });
    EXPECT_NEAR(sum, expected, 1e-7 * (1 + expected)) << last;
  }
}

// 64 files of 128 samples, one a group (paper 003, IV-E2).
TEST(RandomizationLevel, TheConvergenceRuleIsThatOfThePaper) {
  EXPECT_EQ(subsets(grouped(8192, 128, 64)), 64U);
  EXPECT_DOUBLE_EQ(*epochs_limit(grouped(8192, 128, 64)), 128);
  EXPECT_DOUBLE_EQ(*epochs_limit(in_memory(8000, 0.25, 10)), 2000);
  EXPECT_DOUBLE_EQ(*epochs_limit(kept(8000, 4)), 8000);
}

TEST(MeasuredOrder, AFullShuffleKeepsNothing) {
  OrderOptions options = kept(20'000, 1);
  options.ranks = 4;
  const MeasuredOrder measured = measure_order(EpochOrder(options, 0));
  EXPECT_LT(measured.neighbours_kept, 6.0 / 20'000);
  EXPECT_LT(std::abs(measured.correlation), 5 / std::sqrt(20'000));
  EXPECT_NEAR(measured.neighbour_distance, 1, 0.02);
}

TEST(MeasuredOrder, NeighboursThatAreKeptStay) {
  for (const std::uint64_t keep : {4, 16, 256}) {
    const MeasuredOrder measured = measure_order(EpochOrder(kept(7680, keep), 0));
    const auto k = static_cast<double>(keep);
    EXPECT_NEAR(measured.neighbours_kept, (k - 1) / k, 0.01) << keep;
  }
}

TEST(MeasuredOrder, MemoryBoundsHowFarNeighboursComeApart) {
  for (const double ratio : {0.25, 0.5}) {
    const auto measured = measure_order(EpochOrder(in_memory(20'000, ratio, 100), 0));
    EXPECT_NEAR(measured.neighbour_distance, ratio, 0.03);
    EXPECT_LT(measured.neighbours_kept, 6 / (ratio * 20'000));
  }
  const auto measured = measure_order(EpochOrder(grouped(20'000, 100, 4), 0));
  EXPECT_NEAR(measured.neighbour_distance, 4 * 100 / 20'000.0, 0.03);
}

TEST(MeasuredOrder, ReuseComesBackWithinWhatIsInMemory) {
  OrderOptions options = grouped(9600, 100, 4);
  options.reuse = 3;
  for (const ReuseScope scope : {ReuseScope::process, ReuseScope::global}) {
    options.reuse_scope = scope;
    const MeasuredOrder measured = measure_order(EpochOrder(options, 0));
    EXPECT_NEAR(measured.reuse_distance, 400, 10) << "4 ranks with 100 samples each";
    EXPECT_GE(measured.least_reuse_distance, 1U);
    EXPECT_NEAR(measured.neighbour_distance, 4 * 100 / 9600.0, 0.1);
  }
  EXPECT_EQ(measure_order(EpochOrder(kept(100, 1), 0)).reuse_distance, 0);
}

TEST(MeasuredOrder, ACallersListIsMeasuredAsItIs) {
  OrderOptions options{.order = OrderName::listed, .entries = 5, .batch = 2};
  options.ids = test::numbers({0, 1, 2, 3, 4});
  EXPECT_FALSE(randomization_level(options));
  EXPECT_FALSE(epochs_limit(options));
  const MeasuredOrder measured = measure_order(EpochOrder(options, 0));
  EXPECT_DOUBLE_EQ(measured.neighbours_kept, 1);
  EXPECT_DOUBLE_EQ(measured.correlation, 1);
}

TEST(MeasuredOrder, WhatDoesNotFitInMemoryIsNotMeasured) {
  EXPECT_THROW(measure_order(EpochOrder(kept(std::uint64_t{1} << 40, 1), 0)), Error);
}

}  // namespace
}  // namespace forebay
