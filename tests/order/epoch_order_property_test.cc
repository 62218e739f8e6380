// Orders of an epoch over random (N, P, B) and parameters of every kind: what training relies on.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "tests/order/order_cases.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using test::Random;

std::vector<std::uint64_t> samples_of(const EpochOrder& order) {
  std::vector<std::uint64_t> samples;
  for (int rank = 0; rank < order.options().ranks; ++rank) {
    for (std::uint64_t draw = 0; draw < order.draws(rank); ++draw) {
      samples.push_back(order.draw(rank, draw).sample);
    }
  }
  return samples;
}

TEST(EpochOrderProperty, AnEpochIsTheDataSetUpToReportedDropsAndRepeats) {
  test::for_random_orders(1, test::random_cases(150), [](const OrderOptions& options, Random&) {
    const EpochOrder order(options, 3);
    const auto whole = test::wanted(options);
    const test::Drawn drawn = test::draw_all(order, 0, order.steps());
    EXPECT_EQ(drawn.deliveries + order.dropped(), order.size());
    EXPECT_EQ(drawn.repeats, order.repeated());
    if (options.end == OrderEnd::drop) {
      EXPECT_TRUE(test::within(drawn.samples, whole));
      EXPECT_EQ(drawn.repeats, 0U);
    } else {
      EXPECT_EQ(drawn.samples, whole);
      EXPECT_EQ(order.dropped(), 0U);
    }
  });
}

TEST(EpochOrderProperty, EveryRankHasTheSameIterationsAndFullBatchesButForExact) {
  test::for_random_orders(2, 100, [](const OrderOptions& options, Random&) {
    const EpochOrder order(options, 0);
    ASSERT_GT(order.steps(), 0U);
    for (std::uint64_t iteration = 0; iteration < order.steps(); ++iteration) {
      std::uint64_t count = 0, valid = 0;
      for (int rank = 0; rank < options.ranks; ++rank) {
        const Share share = order.share(rank, iteration);
        EXPECT_LE(share.valid, share.count);
        EXPECT_LE(share.first + share.count, order.draws(rank));
        count += share.count;
        valid += share.valid;
      }
      EXPECT_GT(valid, 0U) << "an iteration that nobody has samples for";
      if (options.end == OrderEnd::exact) {
        EXPECT_EQ(valid, count);
      } else {
        EXPECT_EQ(count, options.batch);
      }
      EXPECT_TRUE(valid == options.batch || options.end != OrderEnd::drop);
    }
  });
}

TEST(EpochOrderProperty, ManyDrawsAtOnceAreTheSameAsOneByOne) {
  test::for_random_orders(8, 60, [](const OrderOptions& options, Random& random) {
    const EpochOrder begun(options, 2);
    const Segment done{.ranks = options.ranks,
                       .batch = options.batch,
                       .iterations = random.between(0, begun.steps() / 2)};
    for (const EpochOrder& order : {begun, EpochOrder(options, 2, {done})}) {
      for (int rank = 0; rank < options.ranks; ++rank) {
        const std::uint64_t first = random.between(0, order.draws(rank));
        std::vector<Draw> draws(order.draws(rank) - first);
        order.draws(rank, first, draws);
        for (std::uint64_t i = 0; i < draws.size(); ++i) {
          ASSERT_EQ(draws[i], order.draw(rank, first + i)) << "draw " << first + i;
        }
      }
    }
  });
}

TEST(EpochOrderProperty, ValidDrawsDoNotDependOnHowTheEndIsFilled) {
  test::for_random_orders(3, 60, [](OrderOptions options, Random&) {
    options.end = OrderEnd::exact;
    const EpochOrder exact(options, 1);
    for (const OrderEnd end : {OrderEnd::pad, OrderEnd::wrap}) {
      options.end = end;
      const EpochOrder filled(options, 1);
      ASSERT_EQ(filled.steps(), exact.steps());
      for (int rank = 0; rank < options.ranks; ++rank) {
        for (std::uint64_t draw = 0; draw < exact.draws(rank); ++draw) {
          ASSERT_EQ(filled.draw(rank, draw), exact.draw(rank, draw));
        }
      }
    }
  });
}

TEST(EpochOrderProperty, PadGoesBackOverARanksOwnSamplesAndWrapBeginsTheEpochAgain) {
  test::for_random_orders(4, 100, [](OrderOptions options, Random&) {
    options.end = OrderEnd::pad;
    const EpochOrder pad(options, 1);
    options.end = OrderEnd::wrap;
    const EpochOrder wrap(options, 1);
    std::uint64_t wrapped = 0;
    for (int rank = 0; rank < options.ranks; ++rank) {
      std::uint64_t own = 0;
      while (own < pad.draws(rank) && !pad.draw(rank, own).repeat) ++own;
      for (std::uint64_t i = own; i < pad.draws(rank); ++i) {
        if (own > 0) {
          EXPECT_EQ(pad.draw(rank, i).sample, pad.draw(rank, own - 1 - (i - own) % own).sample);
        }
        EXPECT_EQ(wrap.draw(rank, i).position, wrapped++ % wrap.size());
      }
    }
    EXPECT_EQ(wrapped, wrap.repeated());
  });
}

TEST(EpochOrderProperty, TheSameSeedGivesTheSameOrderAndEveryEpochAnother) {
  test::for_random_orders(5, 40, [](OrderOptions options, Random&) {
    options.entries = std::max<std::uint64_t>(options.entries, 150);
    options.keep = 1;
    options.end = OrderEnd::exact;
    options.bounds = nullptr;
    if (options.order == OrderName::grouped && options.group == 0) options.group = 3;
    const auto first = samples_of(EpochOrder(options, 0));
    EXPECT_EQ(samples_of(EpochOrder(options, 0)), first);
    if (options.order == OrderName::listed && options.reuse == 1) return;
    if (options.order == OrderName::listed && options.ids->size() < 100) return;
    EXPECT_NE(samples_of(EpochOrder(options, 1)), first);
    ++options.seed;
    EXPECT_NE(samples_of(EpochOrder(options, 0)), first);
  });
}

TEST(EpochOrderProperty, PrimesOneSampleAndAMillionAreAllCovered) {
  for (const OrderName kind : test::kAllKinds) {
    for (const std::uint64_t entries : {1, 2, 3, 997, 65'537, 1'000'000}) {
      for (const int ranks : {1, 3, 8}) {
        if (entries == 1'000'000 && ranks != 3)
          continue;  // the rest is covered by the smaller ones
        OrderOptions options{.order = kind, .entries = entries, .ranks = ranks, .batch = 64};
        options.group = kind == OrderName::grouped ? (entries > 500 ? 37 : 1) : 0;
        options.ratio = entries > 500 ? 0.3 : 1;
        if (kind == OrderName::grouped && entries < static_cast<std::uint64_t>(ranks)) continue;
        if (kind == OrderName::listed) {
          std::vector<std::uint64_t> list(entries);
          for (std::uint64_t i = 0; i < entries; ++i) list[i] = entries - 1 - i;
          options.ids = test::numbers(std::move(list));
        }
        const EpochOrder order(options, 7);
        std::vector<bool> seen(entries);
        std::uint64_t count = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          for (std::uint64_t draw = 0; draw < order.draws(rank); ++draw, ++count) {
            const std::uint64_t sample = order.draw(rank, draw).sample;
            ASSERT_FALSE(seen[sample]) << to_string(kind) << " N=" << entries << " P=" << ranks;
            seen[sample] = true;
          }
        }
        EXPECT_EQ(count, entries) << to_string(kind) << " N=" << entries << " P=" << ranks;
      }
    }
  }
}

}  // namespace
}  // namespace forebay
