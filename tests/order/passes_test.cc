// Which delivery of what is in memory an iteration belongs to (EpochOrder::pass).
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

#include "forebay/epoch_order.hpp"
#include "tests/order/order_cases.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using test::Random;

constexpr OrderName kKinds[] = {OrderName::grouped, OrderName::shuffled, OrderName::in_memory,
                                OrderName::listed};

/// Any order with reuse whose batches are single samples of one rank.
OrderOptions sample_by_sample(Random& random, OrderName kind) {
  OrderOptions options = test::random_order(random, kind, 1, true);
  options.batch = 1;
  options.end = OrderEnd::exact;
  return options;
}

TEST(Passes, DeliverWhatIsInMemoryOnceEach) {
  for (int seed = 0; seed < test::random_cases(100); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const OrderOptions options = sample_by_sample(random, kKinds[seed % 4]);
    const EpochOrder order(options, 1);
    std::map<std::uint64_t, std::multiset<std::uint64_t>> passes;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < order.steps(); ++i) {
      const std::uint64_t pass = order.pass(i);
      ASSERT_GE(pass, last);
      ASSERT_LE(pass, last + 1);
      last = pass;
      passes[pass].insert(order.draw(0, i).sample);
    }
    ASSERT_EQ(passes.size() % options.reuse, 0U);
    for (const auto& [pass, samples] : passes) {
      if (pass % options.reuse == 0) continue;
      ASSERT_EQ(samples, passes[pass - 1]) << "pass " << pass;
    }
  }
}

TEST(Passes, AreKeptByThoseWhoTakeOver) {
  for (int seed = 0; seed < test::random_cases(40); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const OrderOptions options = sample_by_sample(random, kKinds[seed % 4]);
    const EpochOrder whole(options, 1);
    const std::uint64_t done = random.between(0, whole.steps() - 1);
    OrderOptions others = options;
    others.batch = 2;
    const EpochOrder rest(others, 1, {{.ranks = 1, .batch = 1, .iterations = done}});
    for (std::uint64_t i = rest.first_iteration(); i < rest.steps(); ++i) {
      ASSERT_EQ(rest.pass(i), whole.pass(done + 2 * (i - rest.first_iteration())));
    }
  }
}

TEST(Passes, ThoseWhoRunOutStayInTheirLast) {
  OrderOptions options{.order = OrderName::grouped, .entries = 30, .ranks = 3, .batch = 3};
  options.group = 10;
  options.reuse = 2;
  const EpochOrder order(options, 0);
  for (std::uint64_t i = 0; i < order.steps(); ++i) EXPECT_EQ(order.pass(i), i / 10);
  options.reuse = 1;
  EXPECT_EQ(EpochOrder(options, 0).pass(5), 0U);
}

}  // namespace
}  // namespace forebay
