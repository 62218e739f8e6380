// Costs of an epoch that can be told beforehand.
#include "order/order_cost.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "forebay/epoch_order.hpp"

namespace forebay {
namespace {

TEST(OrderCost, AGroupedEpochAsksOnceAGroupAndExchangesNothing) {
  const OrderOptions options{
      .order = OrderName::grouped, .entries = 10'000, .ranks = 4, .batch = 40, .group = 100};
  const OrderCost cost = cost_of(EpochOrder(options, 0));
  EXPECT_TRUE(cost.counted);
  EXPECT_EQ(cost.requests, 100U);
  EXPECT_EQ(cost.samples_read, 10'000U);
  EXPECT_EQ(cost.samples_held, 200U) << "two buffers";
  EXPECT_EQ(cost.samples_exchanged, 0U);
  EXPECT_EQ(cost.deliveries, 10'000U);
}

TEST(OrderCost, InMemoryThreeOfFourSamplesComeFromOtherRanksAndHalfFromOtherNodes) {
  OrderOptions options{.order = OrderName::in_memory, .entries = 20'000, .ranks = 4, .batch = 40};
  options.ranks_per_node = 2;
  const OrderCost all = cost_of(EpochOrder(options, 0));
  EXPECT_EQ(all.requests, 4U) << "one a rank";
  EXPECT_EQ(all.samples_held, 5'000U);
  EXPECT_NEAR(static_cast<double>(all.samples_exchanged), 15'000, 500);
  EXPECT_NEAR(static_cast<double>(all.between_nodes), 10'000, 500);
  options.ratio = 0.25;
  options.group = 50;
  const OrderCost quarter = cost_of(EpochOrder(options, 0));
  EXPECT_EQ(quarter.samples_read, 20'000U);
  EXPECT_EQ(quarter.samples_held, 2 * 1'250U);
}

TEST(OrderCost, ReuseReadsOnceAndDeliversOften) {
  OrderOptions options{
      .order = OrderName::grouped, .entries = 9'600, .ranks = 4, .batch = 40, .group = 100};
  options.reuse = 4;
  options.reuse_scope = ReuseScope::global;
  const OrderCost cost = cost_of(EpochOrder(options, 0));
  EXPECT_EQ(cost.samples_read, 9'600U);
  EXPECT_EQ(cost.deliveries, 4 * 9'600U);
  EXPECT_NEAR(static_cast<double>(cost.samples_exchanged), 3 * 9'600 * 0.75, 500);
}

// Too many samples to count: near to what counting gives for fewer.
TEST(OrderCost, IsExpectedWhereItIsNotCounted) {
  for (const OrderName kind : {OrderName::grouped, OrderName::shuffled, OrderName::in_memory}) {
    OrderOptions options{.order = kind, .entries = 100'000, .ranks = 4, .batch = 64};
    options.group = kind == OrderName::shuffled ? 0 : 100;
    options.ratio = 0.5;
    options.ranks_per_node = 2;
    const OrderCost counted = cost_of(EpochOrder(options, 0));
    options.entries *= 1000;
    const OrderCost expected = cost_of(EpochOrder(options, 0));
    ASSERT_FALSE(expected.counted);
    const auto near = [](std::uint64_t one, std::uint64_t other) {
      EXPECT_NEAR(static_cast<double>(one), static_cast<double>(other),
                  0.02 * static_cast<double>(other) + 1);
    };
    near(counted.requests * 1000, expected.requests);
    near(counted.samples_read * 1000, expected.samples_read);
    near(counted.samples_held * (kind == OrderName::in_memory ? 1000 : 1), expected.samples_held);
    near(counted.samples_exchanged * 1000, expected.samples_exchanged);
    near(counted.between_nodes * 1000, expected.between_nodes);
  }
}

}  // namespace
}  // namespace forebay
