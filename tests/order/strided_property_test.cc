// The strided order over random (N, P, B, C): what the algorithm relies on, whatever the numbers.
// (forebay::Run is spelled out: a test body also knows testing::Test::Run.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/order.hpp"

namespace forebay {
namespace {

struct Parameters {
  std::uint64_t entries;
  int ranks;
  std::uint64_t batch;
  std::uint64_t coalesce;

  StridedOrder order() const { return StridedOrder(entries, ranks, batch, coalesce); }
  std::uint64_t window_size() const { return batch * coalesce; }
  std::string text() const {
    return "N=" + std::to_string(entries) + " P=" + std::to_string(ranks) +
           " B=" + std::to_string(batch) + " C=" + std::to_string(coalesce);
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + engine_() % (high - low + 1);
  }
  // Small numbers, where the odd cases are: N < B, B = P, one rank, one sample.
  Parameters parameters() {
    const int ranks = static_cast<int>(between(1, 17));
    return {between(1, 300), ranks, between(ranks, ranks + 60), between(1, 9)};
  }

 private:
  std::mt19937_64 engine_;
};

template <typename Check>
void for_random_parameters(std::uint64_t seed, int count, Check check) {
  Draw draw(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const Parameters p = draw.parameters();
    SCOPED_TRACE(p.text());
    check(p, draw);
  }
}

TEST(StridedOrderProperty, SharesOfABatchDifferByAtMostOneAndAddUp) {
  for_random_parameters(1, 2000, [](const Parameters& p, Draw&) {
    const StridedOrder order = p.order();
    std::uint64_t sum = 0;
    for (int rank = 0; rank < p.ranks; ++rank) {
      EXPECT_EQ(order.share_begin(rank), sum);
      EXPECT_GE(order.share(rank), p.batch / p.ranks);
      EXPECT_LE(order.share(rank), (p.batch + p.ranks - 1) / p.ranks);
      sum += order.share(rank);
    }
    EXPECT_EQ(sum, p.batch);
  });
}

TEST(StridedOrderProperty, EveryPositionOfAWindowIsTakenExactlyOnce) {
  for_random_parameters(2, 600, [](const Parameters& p, Draw& draw) {
    const StridedOrder order = p.order();
    const std::uint64_t window = draw.between(0, 1000);
    std::vector<int> taken(p.window_size());
    for (std::uint64_t turn = 0; turn < p.coalesce; ++turn) {
      for (int rank = 0; rank < p.ranks; ++rank) {
        const forebay::Run run = order.run(rank, window * p.coalesce + turn);
        ASSERT_EQ(run.count, order.share(rank));
        ASSERT_GE(run.first, window * p.window_size());
        ASSERT_LE(run.first + run.count, (window + 1) * p.window_size());
        for (std::uint64_t i = 0; i < run.count; ++i) {
          ++taken[run.first + i - window * p.window_size()];
        }
      }
    }
    EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }));
  });
}

TEST(StridedOrderProperty, ARankOwnsOneRunOfAWindowAndTakesItInOrder) {
  for_random_parameters(3, 1000, [](const Parameters& p, Draw& draw) {
    const StridedOrder order = p.order();
    const std::uint64_t window = draw.between(0, 1000);
    for (int rank = 0; rank < p.ranks; ++rank) {
      const forebay::Run owned = order.window_run(rank, window);
      EXPECT_EQ(owned.count, p.coalesce * order.share(rank));
      std::uint64_t next = owned.first;
      for (std::uint64_t turn = 0; turn < p.coalesce; ++turn) {
        const forebay::Run run = order.run(rank, window * p.coalesce + turn);
        EXPECT_EQ(run.first, next);
        next += run.count;
      }
      EXPECT_EQ(next, owned.first + owned.count);
    }
  });
}

TEST(StridedOrderProperty, WithoutCoalescingItIsThePlainOrder) {
  for_random_parameters(4, 1000, [](const Parameters& p, Draw& draw) {
    const StridedOrder order(p.entries, p.ranks, p.batch);
    const std::uint64_t iteration = draw.between(0, 100000);
    std::uint64_t next = iteration * p.batch;
    for (int rank = 0; rank < p.ranks; ++rank) {
      EXPECT_EQ(order.run(rank, iteration), (forebay::Run{next, order.share(rank)}));
      next += order.share(rank);
    }
    EXPECT_EQ(next, (iteration + 1) * p.batch);
  });
}

TEST(StridedOrderProperty, PositionsWrapAroundTheDataSet) {
  for_random_parameters(5, 1000, [](const Parameters& p, Draw& draw) {
    const StridedOrder order = p.order();
    const std::uint64_t position = draw.between(0, 1000000);
    EXPECT_LT(order.sample(position), p.entries);
    EXPECT_EQ(order.epoch(position) * p.entries + order.sample(position), position);
  });
}

TEST(StridedOrderProperty, AStartShiftsEveryPosition) {
  for_random_parameters(6, 1000, [](const Parameters& p, Draw& draw) {
    const std::uint64_t start = draw.between(0, 100000);
    const StridedOrder plain = p.order();
    const StridedOrder moved(p.entries, p.ranks, p.batch, p.coalesce, {.position = start});
    const int rank = static_cast<int>(draw.between(0, p.ranks - 1));
    const std::uint64_t iteration = draw.between(0, 1000);
    EXPECT_EQ(moved.run(rank, iteration).first, plain.run(rank, iteration).first + start);
    EXPECT_EQ(moved.run(rank, iteration).count, plain.run(rank, iteration).count);
    EXPECT_EQ(moved.window_run(rank, iteration).first,
              plain.window_run(rank, iteration).first + start);
  });
}

TEST(StridedOrderProperty, IterationsOfAnEpochTakeEverySampleAndNoneFewerDo) {
  for_random_parameters(7, 300, [](const Parameters& p, Draw& draw) {
    const StridedOrder order = p.order();
    const std::uint64_t epochs = draw.between(1, 3);
    const std::uint64_t wanted = epochs * p.entries;
    const std::uint64_t iterations = order.iterations(epochs);
    std::vector<bool> taken(wanted);
    std::uint64_t last_useful = 0;
    for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
      for (int rank = 0; rank < p.ranks; ++rank) {
        const forebay::Run run = order.run(rank, iteration);
        for (std::uint64_t g = run.first; g < std::min(run.first + run.count, wanted); ++g) {
          taken[g] = true;
          last_useful = iteration;
        }
      }
    }
    EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](bool one) { return one; }));
    EXPECT_EQ(last_useful + 1, iterations);
  });
}

TEST(StridedOrderProperty, LargeNumbersDoNotOverflow) {
  const std::uint64_t entries = (std::uint64_t{1} << 40) + 7;
  const StridedOrder order(entries, 9216, 1 << 20, 8);
  const std::uint64_t iteration = std::uint64_t{1} << 22;
  const std::uint64_t window = iteration / 8;
  std::uint64_t next = window * 8 * (1 << 20);
  for (int rank = 0; rank < 9216; ++rank) {
    const forebay::Run owned = order.window_run(rank, window);
    ASSERT_EQ(owned.first, next);
    next += owned.count;
  }
  EXPECT_EQ(next, (window + 1) * 8 * (1 << 20));
  EXPECT_LT(order.sample(next), entries);
}

TEST(StridedOrderProperty, NonsenseIsRefused) {
  EXPECT_THROW(StridedOrder(0, 1, 1), Error);
  EXPECT_THROW(StridedOrder(10, 0, 1), Error);
  EXPECT_THROW(StridedOrder(10, 4, 3), Error);
  EXPECT_THROW(StridedOrder(10, 4, 4, 0), Error);
  EXPECT_THROW(StridedOrder(10, 4, std::uint64_t{1} << 32, 1 << 20), Error);
  EXPECT_THROW(StridedOrder(10, 1, 1).iterations(UINT64_MAX), Error);
}

}  // namespace
}  // namespace forebay
