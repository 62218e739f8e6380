// Orders of an epoch in the small and in the large: structure, fixed values, limits, errors.
// (forebay::Run is spelled out: a test body also knows testing::Test::Run.)
#include "forebay/epoch_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/randomization.hpp"
#include "forebay/sample_seed.hpp"
#include "tests/order/order_cases.hpp"

namespace forebay {
namespace {

using test::numbers;
using Ids = std::vector<std::uint64_t>;

Ids ids_of(const EpochOrder& order, int rank, std::uint64_t iteration) {
  Ids ids;
  const Share share = order.share(rank, iteration);
  for (std::uint64_t i = 0; i < share.count; ++i) {
    ids.push_back(order.draw(rank, share.first + i).sample);
  }
  return ids;
}

Ids ids_of(const EpochOrder& order, int rank) {
  Ids ids;
  for (std::uint64_t i = 0; i < order.draws(rank); ++i) ids.push_back(order.draw(rank, i).sample);
  return ids;
}

OrderOptions grouped(std::uint64_t entries, int ranks, std::uint64_t batch, std::uint64_t group) {
  return {.order = OrderName::grouped,
          .entries = entries,
          .ranks = ranks,
          .batch = batch,
          .group = group};
}

void expect_refused(const OrderOptions& options, const std::string& naming) {
  try {
    EpochOrder(options, 0);
    FAIL() << "should have named " << naming;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find(naming), std::string::npos) << error.what();
  }
}

// These numbers must never change: saved runs and other machines rely on them.
TEST(EpochOrder, IsTheSameOnEveryPlatform) {
  OrderOptions options{
      .order = OrderName::shuffled, .entries = 12, .ranks = 2, .batch = 4, .seed = 1};
  EXPECT_EQ(ids_of(EpochOrder(options, 0), 0), (Ids{3, 6, 0, 1, 10, 4}));
  EXPECT_EQ(ids_of(EpochOrder(grouped(12, 2, 4, 3), 1), 1), (Ids{3, 5, 4, 7, 6, 8}));
  options.order = OrderName::in_memory;
  options.ratio = 0.5;
  options.group = 2;
  EXPECT_EQ(ids_of(EpochOrder(options, 2), 0), (Ids{10, 7, 11, 6, 1, 9}));
  EXPECT_EQ(sample_seed(1, 2, 3), 15370946833796901923U);
  EXPECT_NE(sample_seed(1, 2, 3), sample_seed(1, 3, 2));
  EXPECT_NE(sample_seed(1, 2, 3), sample_seed(2, 2, 3));
}

TEST(EpochOrder, AGroupIsUsedUpBeforeTheNextOneAndSamplesArePermutedInIt) {
  const EpochOrder order(grouped(100, 2, 10, 10), 0);
  std::uint64_t in_order = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const Ids ids = ids_of(order, rank);
    for (std::size_t group = 0; group < 5; ++group) {
      const Ids part(ids.begin() + group * 10, ids.begin() + (group + 1) * 10);
      const auto [least, most] = std::ranges::minmax(part);
      EXPECT_EQ(most - least, 9U);
      EXPECT_EQ(least % 10, 0U);
      in_order += std::ranges::is_sorted(part) ? 1 : 0;
    }
  }
  EXPECT_LE(in_order, 1U);
}

TEST(EpochOrder, NeighboursThatAreKeptFollowEachOther) {
  OrderOptions options{.order = OrderName::shuffled, .entries = 40, .batch = 8};
  options.keep = 4;
  const Ids ids = ids_of(EpochOrder(options, 0), 0);
  for (std::size_t i = 0; i < 40; i += 4) {
    for (std::size_t k = 1; k < 4; ++k) EXPECT_EQ(ids[i + k], ids[i] + k);
  }
}

TEST(EpochOrder, KeepingNoNumberOfNeighboursKeepsAllInTheOrderOfTheDataSet) {
  OrderOptions options{.order = OrderName::shuffled, .entries = 41, .batch = 8};
  options.keep = 0;
  const Ids ids = ids_of(EpochOrder(options, 3), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], i);
  OrderOptions spelled_out = options;
  spelled_out.keep = 41;
  EXPECT_EQ(options.identity(), spelled_out.identity());
  EXPECT_EQ(randomization_level(options), randomization_level(spelled_out));
}

// Where a sample comes in one epoch says nothing about where it comes in the next one, or with the
// next seed.
TEST(EpochOrder, OrdersOfSuccessiveEpochsAndSeedsAreIndependent) {
  const auto places = [](OrderName kind, std::uint64_t seed, std::uint64_t epoch) {
    OrderOptions options{.order = kind, .entries = 10'000, .batch = 10, .seed = seed};
    options.group = kind == OrderName::shuffled ? 0 : 10;
    const Ids ids = ids_of(EpochOrder(options, epoch), 0);
    std::vector<double> result(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) result[ids[i]] = static_cast<double>(i) - 4999.5;
    return result;
  };
  for (const OrderName kind : {OrderName::shuffled, OrderName::in_memory, OrderName::grouped}) {
    const double samples = kind == OrderName::grouped ? 1000 : 10'000;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const auto one = places(kind, 7, i);
      for (const auto& other : {places(kind, 7, i + 1), places(kind, 8, i)}) {
        const double both = std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
        const double self = std::inner_product(one.begin(), one.end(), one.begin(), 0.0);
        EXPECT_LT(std::abs(both / self), 5 / std::sqrt(samples)) << to_string(kind);
      }
    }
  }
}

TEST(EpochOrder, ARoundHoldsWholeUnitsAndIsUsedUpBeforeTheNextOne) {
  OrderOptions options{.order = OrderName::in_memory, .entries = 100, .ranks = 4, .batch = 10};
  options.ratio = 0.2;
  options.group = 5;
  const EpochOrder order(options, 0);
  for (std::uint64_t round = 0; round < 5; ++round) {
    std::vector<int> of_unit(20);
    for (const std::uint64_t iteration : {2 * round, 2 * round + 1}) {
      for (int rank = 0; rank < 4; ++rank) {
        for (const std::uint64_t sample : ids_of(order, rank, iteration)) ++of_unit[sample / 5];
      }
    }
    EXPECT_EQ(std::ranges::count(of_unit, 5), 4);
  }
}

TEST(EpochOrder, ACallersListIsKeptExactly) {
  OrderOptions options{.order = OrderName::listed, .entries = 10, .ranks = 2, .batch = 4};
  options.ids = numbers({9, 9, 0, 3, 2, 1, 7});
  const EpochOrder order(options, 5);
  EXPECT_EQ(ids_of(order, 0, 0), (Ids{9, 9}));
  EXPECT_EQ(ids_of(order, 1, 0), (Ids{0, 3}));
  EXPECT_EQ(ids_of(order, 0, 1), (Ids{2}));
  EXPECT_EQ(ids_of(order, 1, 1), (Ids{1, 7}));
  EXPECT_EQ(order.steps(), 2U);
}

TEST(EpochOrder, RanksWithFewerGroupsRunOutFirstAndAllStayInStep) {
  const EpochOrder exact(grouped(30, 2, 4, 10), 0);
  EXPECT_EQ(exact.steps(), 10U) << "two groups on rank 1, one on rank 0";
  EXPECT_EQ(exact.share(0, 4).valid, 2U);
  EXPECT_EQ(exact.share(0, 5).count, 0U);
  EXPECT_EQ(exact.share(1, 9).valid, 2U);
  OrderOptions options = grouped(30, 2, 4, 10);
  options.end = OrderEnd::drop;
  EXPECT_EQ(EpochOrder(options, 0).steps(), 5U);
  EXPECT_EQ(EpochOrder(options, 0).dropped(), 10U);
  options.end = OrderEnd::pad;
  EXPECT_EQ(EpochOrder(options, 0).repeated(), 10U);
}

TEST(EpochOrder, ReuseWithinAProcessStaysWithItsRankAndDeliversEachSampleSoOften) {
  OrderOptions options = grouped(40, 2, 4, 10);
  options.reuse = 3;
  const EpochOrder order(options, 0);
  EXPECT_EQ(order.size(), 120U);
  const Ids ids = ids_of(order, 0);
  for (std::size_t group = 0; group < 2; ++group) {
    Ids passes[3];
    for (std::size_t pass = 0; pass < 3; ++pass) {
      const auto first = ids.begin() + static_cast<std::ptrdiff_t>(group * 30 + pass * 10);
      passes[pass].assign(first, first + 10);
    }
    EXPECT_NE(passes[0], passes[1]) << "recombined";
    EXPECT_TRUE(std::ranges::is_permutation(passes[0], passes[1]));
    EXPECT_TRUE(std::ranges::is_permutation(passes[0], passes[2]));
  }
}

TEST(EpochOrder, ManySamplesAreEvaluatedPointByPoint) {
  const std::uint64_t many = (std::uint64_t{1} << 48) - 5;
  for (const OrderName kind : {OrderName::grouped, OrderName::shuffled, OrderName::in_memory}) {
    OrderOptions options{.order = kind, .entries = many, .ranks = 1000, .batch = 1 << 20};
    options.group = kind == OrderName::shuffled ? 0 : 1'000'000;
    options.ratio = 0.1;
    options.end = OrderEnd::wrap;
    const EpochOrder order(options, 3);
    Ids samples;
    for (int rank = 0; rank < 1000; rank += 37) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        const std::uint64_t draw = order.draws(rank) / 100 * i;
        const Draw drawn = order.draw(rank, draw);
        ASSERT_LT(drawn.sample, many);
        if (!drawn.repeat) samples.push_back(drawn.sample);
        const Place place = order.place(rank, draw);
        ASSERT_LT(place.rank, 1000);
      }
      EXPECT_TRUE(order.draw(rank, order.draws(rank) - 1).repeat || order.repeated() < many);
    }
    std::ranges::sort(samples);
    EXPECT_EQ(std::ranges::adjacent_find(samples), samples.end()) << to_string(kind);
  }
}

TEST(EpochOrder, RequestsThatMakeNoSenseAreRefusedWithTheirReason) {
  OrderOptions options{.order = OrderName::shuffled, .entries = 100, .ranks = 4, .batch = 8};
  options.entries = 0;
  expect_refused(options, "no samples");
  options.entries = std::uint64_t{1} << 49;
  expect_refused(options, "too large");
  options.entries = 100;
  options.batch = 3;
  expect_refused(options, "cannot be shared by 4 ranks");
  options.batch = 8;
  options.ranks = 0;
  expect_refused(options, "at least one rank");
  options.ranks = 4;
  options.keep = 101;
  expect_refused(options, "--keep");
  options.keep = 1;
  options.reuse = 0;
  expect_refused(options, "--reuse");
  options.reuse = 1;
  options.window = 0;
  expect_refused(options, "--window");
  options.window = 8;
  options.end = OrderEnd::drop;
  options.batch = 101;
  expect_refused(options, "does not fill one batch of 101");
}

TEST(EpochOrder, GroupsThatCannotBeSharedAreRefused) {
  expect_refused(grouped(100, 4, 8, 0), "--group");
  expect_refused(grouped(100, 1, 8, 101), "larger than the data set");
  expect_refused(grouped(100, 4, 8, 50), "2 groups cannot be shared by 4 ranks");
  OrderOptions options = grouped(100, 4, 8, 0);
  for (const auto& bounds : {Ids{0}, Ids{0, 50}, Ids{1, 100}, Ids{0, 50, 50, 100}, Ids{}}) {
    options.bounds = numbers(bounds);
    expect_refused(options, "bounds");
  }
  options.bounds = numbers({0, 10, 20, 90, 100});
  EXPECT_NO_THROW(EpochOrder(options, 0));
  options.reuse = 2;
  options.reuse_scope = ReuseScope::node;
  expect_refused(options, "groups of one size");
  options = grouped(101, 6, 12, 10);
  options.end = OrderEnd::drop;
  expect_refused(options, "a rank may have 1 samples");
  options = grouped(100, 3, 8, 10);
  options.reuse = 2;
  options.reuse_scope = ReuseScope::global;
  expect_refused(options, "equal shares");
}

TEST(EpochOrder, MemoryThatHoldsNothingIsRefused) {
  OrderOptions options{.order = OrderName::in_memory, .entries = 100, .ranks = 2, .batch = 8};
  for (const double ratio : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    options.ratio = ratio;
    expect_refused(options, "memory ratio");
  }
  options.ratio = 0.001;
  expect_refused(options, "less than one unit");
  options.ratio = 0.1;
  options.group = 11;
  expect_refused(options, "less than one unit");
  options.group = 10;
  EXPECT_NO_THROW(EpochOrder(options, 0));
  options.reuse = 2;
  expect_refused(options, "--reuse-scope global");
}

TEST(EpochOrder, AListWithoutSamplesOrWithWrongOnesIsRefused) {
  OrderOptions options{.order = OrderName::listed, .entries = 10, .ranks = 2, .batch = 8};
  expect_refused(options, "empty");
  options.ids = numbers({});
  expect_refused(options, "empty");
  options.ids = numbers({1, 2, 10});
  expect_refused(options, "entry 2 of the list");
}

TEST(EpochOrder, IdentityTellsOrdersApartButNotTheirRanks) {
  const OrderOptions options = grouped(100, 2, 8, 10);
  OrderOptions other = options;
  other.ranks = 4;
  other.batch = 16;
  EXPECT_EQ(options.identity(), other.identity());
  other.seed = 9;
  EXPECT_NE(options.identity(), other.identity());
  OrderOptions listed{.order = OrderName::listed, .entries = 10, .batch = 8};
  listed.ids = numbers({1, 2});
  const std::string one = listed.identity();
  listed.ids = numbers({2, 1});
  EXPECT_NE(listed.identity(), one);
}

}  // namespace
}  // namespace forebay
