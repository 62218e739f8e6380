// Buffers: every draw is served by exactly one, what it needs is where place() says, and each unit
// is read once.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "order/order_cost.hpp"
#include "tests/order/order_cases.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using test::Random;

std::vector<Buffer> buffers_from(const EpochOrder& order, int rank, std::uint64_t iteration) {
  std::vector<Buffer> buffers;
  for (auto buffer = order.first_buffer(rank, iteration); buffer;
       buffer = order.next_buffer(rank, *buffer)) {
    buffers.push_back(*buffer);
  }
  return buffers;
}

std::vector<std::uint64_t> content(const Buffer& buffer) {
  std::vector<std::uint64_t> samples;
  for (const forebay::Run& run : buffer.loads) {
    for (std::uint64_t i = 0; i < run.count; ++i) samples.push_back(run.first + i);
  }
  return samples;
}

/// What all ranks hold in shared rounds: (rank, round) -> samples.
using Memory = std::map<std::pair<int, std::uint64_t>, std::vector<std::uint64_t>>;

Memory shared_memory(const EpochOrder& order, std::uint64_t iteration) {
  Memory memory;
  for (int rank = 0; rank < order.options().ranks; ++rank) {
    for (const Buffer& buffer : buffers_from(order, rank, iteration)) {
      if (buffer.shared) memory[{rank, buffer.round}] = content(buffer);
    }
  }
  return memory;
}

void expect_served(const EpochOrder& order, std::uint64_t iteration) {
  const Memory memory = shared_memory(order, iteration);
  for (int rank = 0; rank < order.options().ranks; ++rank) {
    std::uint64_t next = order.share(rank, iteration).first;
    for (const Buffer& buffer : buffers_from(order, rank, iteration)) {
      ASSERT_LE(buffer.first, next);
      const auto loaded = content(buffer);
      for (std::uint64_t draw = std::max(buffer.first, next); draw < buffer.first + buffer.count;
           ++draw, ++next) {
        ASSERT_EQ(draw, next);
        const Place place = order.place(rank, draw);
        const auto& held = buffer.shared ? memory.at({place.rank, buffer.round}) : loaded;
        ASSERT_TRUE(buffer.shared || place.rank == rank);
        ASSERT_LT(place.slot, held.size());
        ASSERT_EQ(held[place.slot], order.draw(rank, draw).sample) << rank << " " << draw;
        const Buffer again = order.buffer(rank, draw);
        ASSERT_EQ(again.first, buffer.first);
        ASSERT_EQ(again.count, buffer.count);
        ASSERT_EQ(again.loads, buffer.loads);
      }
    }
    ASSERT_EQ(next, order.draws(rank));
  }
}

TEST(EpochOrderBuffer, EveryDrawIsServedFromWhereItsSampleIs) {
  test::for_random_orders(11, test::random_cases(120),
                          [](const OrderOptions& options, Random& random) {
                            const EpochOrder order(options, 2);
                            expect_served(order, 0);
                            expect_served(order, random.between(0, order.steps() - 1));
                          });
}

TEST(EpochOrderBuffer, AlsoInAnEpochThatOtherRanksHaveBegun) {
  test::for_random_orders(12, test::random_cases(120), [](OrderOptions options, Random& random) {
    const EpochOrder before(options, 2);
    const std::vector<Segment> done{
        {options.ranks, options.batch, random.between(0, before.steps())}};
    if (options.order != OrderName::grouped) options.ranks = static_cast<int>(random.between(1, 8));
    options.batch = static_cast<std::uint64_t>(options.ranks) * random.between(1, 6);
    if (!test::is_possible(options)) return;
    const EpochOrder order(options, 2, done);
    if (order.first_iteration() < order.steps()) expect_served(order, order.first_iteration());
  });
}

void expect_none_larger(const EpochOrder& order, std::uint64_t most) {
  for (int rank = 0; rank < order.options().ranks; ++rank) {
    auto buffer = order.first_buffer(rank, order.first_iteration());
    for (; buffer; buffer = order.next_buffer(rank, *buffer)) {
      std::uint64_t samples = 0;
      for (const auto& load : buffer->loads) samples += load.count;
      EXPECT_LE(samples, most);
    }
  }
}

TEST(EpochOrderBuffer, NoneIsLargerThanTheMostThatIsExpected) {
  test::for_random_orders(14, 80, [](OrderOptions options, Random& random) {
    const EpochOrder begun(options, 1);
    expect_none_larger(begun, most_loaded(options, false));
    const std::vector<Segment> done{
        {options.ranks, options.batch, random.between(0, begun.steps())}};
    if (options.order != OrderName::grouped) options.ranks = static_cast<int>(random.between(1, 8));
    options.batch = static_cast<std::uint64_t>(options.ranks) * random.between(1, 6);
    if (!test::is_possible(options)) return;
    expect_none_larger(EpochOrder(options, 1, done), most_loaded(options, true));
  });
}

TEST(EpochOrderBuffer, AGroupedEpochReadsEveryGroupOnceWhole) {
  const OrderOptions options{.order = OrderName::grouped,
                             .entries = 1003,
                             .ranks = 3,
                             .batch = 30,
                             .seed = 5,
                             .group = 50,
                             .reuse = 2};
  const EpochOrder order(options, 4);
  std::map<std::uint64_t, int> reads;
  for (int rank = 0; rank < 3; ++rank) {
    for (const Buffer& buffer : buffers_from(order, rank, 0)) {
      ASSERT_EQ(buffer.loads.size(), 1U);
      const forebay::Run load = buffer.loads.front();
      EXPECT_EQ(load.first % 50, 0U);
      EXPECT_EQ(load.count, load.first == 1000 ? 3U : 50U);
      EXPECT_EQ(buffer.count, 2 * load.count);
      ++reads[load.first];
    }
  }
  EXPECT_EQ(reads.size(), 21U);
  for (const auto& [first, times] : reads) EXPECT_EQ(times, 1) << first;
}

TEST(EpochOrderBuffer, RoundsHoldNoMoreThanTheMemoryRatioAndReadEverySampleOnce) {
  test::for_random_orders(13, 60, [](OrderOptions options, Random&) {
    if (options.order != OrderName::in_memory) return;
    options.end = OrderEnd::exact;
    const EpochOrder order(options, 9);
    std::map<std::uint64_t, std::uint64_t> of_round;
    std::vector<int> reads(options.entries);
    for (int rank = 0; rank < options.ranks; ++rank) {
      for (const Buffer& buffer : buffers_from(order, rank, 0)) {
        for (const std::uint64_t sample : content(buffer)) ++reads[sample];
        of_round[buffer.round] += content(buffer).size();
      }
    }
    for (const int times : reads) ASSERT_EQ(times, 1);
    for (const auto& [round, samples] : of_round) {
      EXPECT_LE(samples, options.ratio * static_cast<double>(options.entries) + 1e-9);
    }
  });
}

TEST(EpochOrderBuffer, ADataSetInMemoryStaysWithTheRanksThatHaveReadIt) {
  OrderOptions options{.order = OrderName::in_memory, .entries = 500, .ranks = 4, .batch = 32};
  options.end = OrderEnd::wrap;
  const EpochOrder one(options, 0), other(options, 1);
  ASSERT_TRUE(one.resident());
  for (int rank = 0; rank < 4; ++rank) {
    const auto buffers = buffers_from(one, rank, 0);
    ASSERT_EQ(buffers.size(), 1U);
    EXPECT_EQ(buffers[0].loads.size(), 1U) << "one sequential read";
    EXPECT_EQ(buffers_from(other, rank, 0)[0].loads, buffers[0].loads);
  }
  options.ratio = 0.5;
  EXPECT_FALSE(EpochOrder(options, 0).resident());
}

TEST(EpochOrderBuffer, ReuseAcrossRanksReadsNothingTwice) {
  for (const OrderName kind : {OrderName::grouped, OrderName::shuffled}) {
    const OrderOptions options{.order = kind,
                               .entries = 960,
                               .ranks = 4,
                               .batch = 16,
                               .group = kind == OrderName::grouped ? 24U : 0U,
                               .reuse = 3,
                               .reuse_scope = ReuseScope::node,
                               .ranks_per_node = 2,
                               .window = 6};
    const EpochOrder order(options, 0);
    std::vector<int> reads(960);
    for (int rank = 0; rank < 4; ++rank) {
      for (const Buffer& buffer : buffers_from(order, rank, 0)) {
        for (const std::uint64_t sample : content(buffer)) ++reads[sample];
      }
    }
    for (const int times : reads) ASSERT_EQ(times, 1);
    std::uint64_t from_neighbour = 0;
    for (std::uint64_t draw = 0; draw < order.draws(2); ++draw) {
      const int holder = order.place(2, draw).rank;
      ASSERT_TRUE(holder == 2 || holder == 3) << "of its node";
      from_neighbour += holder == 3 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(from_neighbour), 240, 60) << "half of two passes";
  }
}

}  // namespace
}  // namespace forebay
