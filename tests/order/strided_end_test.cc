// Strided runs of whole epochs: where they end, what the last batch is, and how they go on. The
// model keeps a plain list of the positions that are left, and deals its front by hand.
// (forebay::Run is spelled out: a test body also knows testing::Test::Run.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/order.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using Numbers = std::vector<std::uint64_t>;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + engine_() % (high - low + 1);
  }

 private:
  std::mt19937_64 engine_;
};

/// What one rank gets at one iteration: global positions, those behind `own` filled up.
struct Share {
  Numbers globals;
  std::size_t own = 0;
  bool operator==(const Share&) const = default;
};

/// By iteration and rank.
using Deal = std::vector<std::vector<Share>>;

Share share_of(const StridedOrder& order, int rank, std::uint64_t iteration) {
  Share share;
  const forebay::Run run = order.run(rank, iteration);
  for (std::uint64_t position = run.first; position < run.first + run.count; ++position) {
    share.globals.push_back(order.global(position));
    if (!order.repeats(position)) ++share.own;
  }
  return share;
}

Deal deal_of(const StridedOrder& order) {
  Deal deal(order.iterations());
  for (std::uint64_t iteration = 0; iteration < deal.size(); ++iteration) {
    for (int rank = 0; rank < order.ranks(); ++rank) {
      deal[iteration].push_back(share_of(order, rank, iteration));
    }
  }
  return deal;
}

struct Parameters {
  std::uint64_t entries;
  int ranks;
  std::uint64_t batch;
  std::uint64_t coalesce;
  EpochLimit limit;

  std::uint64_t begin(int rank) const { return static_cast<std::uint64_t>(rank) * batch / ranks; }
  std::uint64_t share(int rank) const { return begin(rank + 1) - begin(rank); }
  StridedOrder order(StridedStart start) const {
    return StridedOrder(entries, ranks, batch, coalesce, std::move(start), limit);
  }
  std::string text() const {
    return "N=" + std::to_string(entries) + " P=" + std::to_string(ranks) +
           " B=" + std::to_string(batch) + " C=" + std::to_string(coalesce) +
           " E=" + std::to_string(limit.epochs) + " " + std::string(to_string(limit.end));
  }
};

Parameters random_parameters(Draw& draw, std::uint64_t entries, std::uint64_t epochs) {
  const int ranks = static_cast<int>(draw.between(1, 9));
  const auto end = static_cast<OrderEnd>(draw.between(0, 3));
  return {entries, ranks, draw.between(ranks, ranks + 15), draw.between(1, 6), {epochs, end}};
}

/// Deals `left`, as the description says it, to the end of the run.
class Model {
 public:
  Model(const Parameters& run, const Numbers& left) : run_(run), own_(run.ranks) {
    for (std::size_t at = 0; at < left.size();) {
      const std::uint64_t rest = left.size() - at;
      const std::uint64_t size = std::min(rest, run.coalesce * run.batch);
      deal_window({left.begin() + static_cast<std::ptrdiff_t>(at),
                   left.begin() + static_cast<std::ptrdiff_t>(at + size)});
      at += size;
    }
  }
  const Deal& deal() const { return deal_; }

 private:
  void deal_window(const Numbers& window) {
    const std::uint64_t full = window.size() / run_.batch, tail = window.size() % run_.batch;
    const bool last = tail > 0 && run_.limit.end != OrderEnd::drop;
    const std::size_t first = deal_.size();
    deal_.resize(first + full + (last ? 1 : 0), std::vector<Share>(run_.ranks));
    std::size_t at = 0;
    for (int rank = 0; rank < run_.ranks; ++rank) {
      for (std::uint64_t turn = 0; turn < full; ++turn) {
        for (std::uint64_t i = 0; i < run_.share(rank); ++i) take(first + turn, rank, window[at++]);
      }
      const std::uint64_t of_tail =
          run_.begin(rank + 1) * tail / run_.batch - run_.begin(rank) * tail / run_.batch;
      for (std::uint64_t i = 0; i < of_tail; ++i, ++at) {
        if (last) take(first + full, rank, window[at]);
      }
    }
    if (last && run_.limit.end != OrderEnd::exact) fill_up();
  }

  void take(std::size_t iteration, int rank, std::uint64_t global) {
    Share& share = deal_[iteration][rank];
    share.globals.push_back(global);
    ++share.own;
    own_[rank].push_back(global);
  }

  void fill_up() {
    std::uint64_t wrapped = 0;
    for (int rank = 0; rank < run_.ranks; ++rank) {
      Numbers& globals = deal_.back()[rank].globals;
      const Numbers& own = own_[rank];
      for (std::uint64_t back = 0; globals.size() < run_.share(rank); ++back, ++wrapped) {
        const bool pads = run_.limit.end == OrderEnd::pad && !own.empty();
        globals.push_back(pads ? own[own.size() - 1 - back % own.size()]
                               : (run_.limit.epochs - 1) * run_.entries + wrapped % run_.entries);
      }
    }
  }

  Parameters run_;
  std::vector<Numbers> own_;  ///< of each rank, all that it took
  Deal deal_;
};

Numbers numbers_below(std::uint64_t end) {
  Numbers numbers(end);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Strikes out what the first iterations of `deal` took.
Numbers left_after(const Numbers& left, const Deal& deal, std::uint64_t iterations) {
  Numbers taken;
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    for (const Share& share : deal[iteration]) {
      taken.insert(taken.end(), share.globals.begin(),
                   share.globals.begin() + static_cast<std::ptrdiff_t>(share.own));
    }
  }
  std::ranges::sort(taken);
  EXPECT_TRUE(std::ranges::adjacent_find(taken) == taken.end()) << "a position is taken twice";
  Numbers rest;
  std::ranges::set_difference(left, taken, std::back_inserter(rest));
  EXPECT_EQ(rest.size() + taken.size(), left.size()) << "something else was taken";
  return rest;
}

std::size_t deliveries(const Deal& deal) {
  std::size_t count = 0;
  for (const auto& iteration : deal) {
    for (const Share& share : iteration) count += share.own;
  }
  return count;
}

TEST(StridedEnd, EachSampleOfEachEpochIsDealtOnceAsThePlainListSays) {
  Draw draw(1);
  for (int round = 0; round < test::long_cases(1500) && !HasFailure(); ++round) {
    const Parameters run = random_parameters(draw, draw.between(1, 150), draw.between(1, 3));
    SCOPED_TRACE(run.text());
    const Numbers all = numbers_below(run.entries * run.limit.epochs);
    const StridedOrder order = run.order({});
    const Deal deal = deal_of(order);
    ASSERT_EQ(deal, Model(run, all).deal());
    const std::uint64_t left = left_after(all, deal, deal.size()).size();
    EXPECT_EQ(left, run.limit.end == OrderEnd::drop ? all.size() % run.batch : 0);
    EXPECT_EQ(order.dropped(), left);
    const bool fills = run.limit.end == OrderEnd::pad || run.limit.end == OrderEnd::wrap;
    const std::uint64_t tail = all.size() % run.batch;
    EXPECT_EQ(order.repeated(), fills && tail > 0 ? run.batch - tail : 0);
  }
}

TEST(StridedEnd, NoRankStarvesForMoreThanTheLastBatch) {
  Draw draw(2);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const Parameters run = random_parameters(draw, draw.between(1, 150), draw.between(1, 3));
    SCOPED_TRACE(run.text());
    const Deal deal = deal_of(run.order({}));
    for (std::size_t iteration = 0; iteration < deal.size(); ++iteration) {
      for (int rank = 0; rank < run.ranks; ++rank) {
        const std::size_t size = deal[iteration][rank].globals.size();
        const bool whole = iteration + 1 < deal.size() || run.limit.end != OrderEnd::exact;
        ASSERT_LE(size, run.share(rank));
        EXPECT_TRUE(!whole || size == run.share(rank));
      }
    }
    EXPECT_EQ(deal.size(), run.limit.end == OrderEnd::drop
                               ? run.entries * run.limit.epochs / run.batch
                               : (run.entries * run.limit.epochs + run.batch - 1) / run.batch);
  }
}

// Stops anywhere, also at the end, and with other limits than those who go on.
TEST(StridedEnd, GoingOnWithOtherRanksAndLimitsRepeatsAndLosesNothing) {
  Draw draw(3);
  for (int round = 0; round < test::long_cases(1500) && !HasFailure(); ++round) {
    const std::uint64_t entries = draw.between(1, 120);
    const std::uint64_t epochs = draw.between(1, 3);
    Numbers left = numbers_below(entries * (epochs + 1));
    StridedStart start;
    std::string runs;
    for (std::uint64_t stretch = draw.between(1, 5); stretch > 0; --stretch) {
      Parameters run = random_parameters(draw, entries, draw.between(1, epochs + 1));
      runs += run.text() + "; ";
      SCOPED_TRACE(runs);
      const StridedOrder order = run.order(start);
      Numbers within = left;
      std::erase_if(within, [&](std::uint64_t g) { return g >= entries * run.limit.epochs; });
      const Deal deal = deal_of(order);
      ASSERT_EQ(deal, Model(run, within).deal());
      const std::uint64_t stop = draw.between(0, deal.size());
      left = left_after(left, deal, stop);
      start = order.after(stop);
    }
    Parameters rest = random_parameters(draw, entries, epochs + 1);
    rest.limit.end = OrderEnd::exact;
    SCOPED_TRACE(runs + rest.text());
    const Deal deal = deal_of(rest.order(start));
    ASSERT_EQ(deliveries(deal), left.size());
    EXPECT_TRUE(left_after(left, deal, deal.size()).empty());
  }
}

TEST(StridedEnd, ALimitLeavesWindowsBeforeTheLastAsTheyAre) {
  Draw draw(4);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const Parameters run = random_parameters(draw, draw.between(1, 150), draw.between(1, 3));
    SCOPED_TRACE(run.text());
    const StridedOrder limited = run.order({});
    const StridedOrder endless(run.entries, run.ranks, run.batch, run.coalesce);
    for (std::uint64_t i = 0; i < limited.iterations() && !limited.ends_within(i + 1); ++i) {
      for (int rank = 0; rank < run.ranks; ++rank) {
        ASSERT_EQ(limited.run(rank, i), endless.run(rank, i));
      }
    }
    EXPECT_EQ(endless.iterations(), UINT64_MAX);
  }
}

TEST(StridedEnd, PositionsInARowStandForGlobalOnesInARow) {
  Draw draw(5);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const std::uint64_t entries = draw.between(1, 150);
    const StridedOrder first = random_parameters(draw, entries, 1).order({});
    const Parameters run = random_parameters(draw, entries, 2);
    SCOPED_TRACE(run.text());
    const StridedOrder order = run.order(first.after(draw.between(0, first.iterations())));
    for (std::uint64_t i = 0; i < order.iterations(); ++i) {
      for (int rank = 0; rank < run.ranks; ++rank) {
        const forebay::Run taken = order.run(rank, i);
        for (std::uint64_t at = taken.first, end = taken.first + taken.count; at < end;) {
          const std::uint64_t count = std::min(order.consecutive(at), end - at);
          ASSERT_GE(count, 1U);
          for (std::uint64_t k = 0; k < count; ++k) {
            ASSERT_EQ(order.global(at + k), order.global(at) + k);
          }
          at += count;
        }
      }
    }
  }
}

TEST(StridedEnd, IterationsOfAnEpochAreTheFewestThatTakeIt) {
  Draw draw(6);
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const Parameters run = random_parameters(draw, draw.between(1, 150), draw.between(1, 3));
    SCOPED_TRACE(run.text());
    const StridedOrder order = run.order({});
    const Deal deal = deal_of(order);
    for (std::uint64_t epochs = 1; epochs <= run.limit.epochs; ++epochs) {
      std::uint64_t last = 0;
      for (std::uint64_t i = 0; i < deal.size(); ++i) {
        for (const Share& share : deal[i]) {
          for (std::size_t k = 0; k < share.own; ++k) {
            if (share.globals[k] < epochs * run.entries) last = i + 1;
          }
        }
      }
      const std::uint64_t dropped = order.dropped();
      if (dropped > 0) {
        EXPECT_GE(order.iterations(epochs), last) << "what is dropped is missing to the end";
      } else {
        EXPECT_EQ(order.iterations(epochs), last);
      }
    }
  }
}

// Found by trials of the command: 12 deliveries of 10 records, three epochs as one.
TEST(StridedEnd, OneEpochIsOne) {
  const StridedOrder ten(10, 3, 6, 1, {}, {.epochs = 1});
  EXPECT_EQ(ten.iterations(), 2U);
  EXPECT_EQ(deliveries(deal_of(ten)), 10U);
  const StridedOrder three(3, 1, 8, 1, {}, {.epochs = 1});
  EXPECT_EQ(deal_of(three), (Deal{{Share{{0, 1, 2}, 3}}}));
  const StridedOrder wrapped(3, 1, 8, 1, {}, {.epochs = 1, .end = OrderEnd::wrap});
  EXPECT_EQ(deal_of(wrapped), (Deal{{Share{{0, 1, 2, 0, 1, 2, 0, 1}, 3}}}));
  const StridedOrder padded(3, 1, 8, 1, {}, {.epochs = 1, .end = OrderEnd::pad});
  EXPECT_EQ(deal_of(padded), (Deal{{Share{{0, 1, 2, 2, 1, 0, 2, 1}, 3}}}));
  EXPECT_EQ(StridedOrder(3, 1, 8, 1, {}, {.epochs = 1, .end = OrderEnd::drop}).iterations(), 0U);
}

TEST(StridedEnd, LargeNumbersDoNotOverflow) {
  const std::uint64_t entries = (std::uint64_t{1} << 40) + 7;
  const int ranks = 9216;
  const StridedOrder order(entries, ranks, (1 << 20) + 3, 8, {}, {.epochs = 3});
  const std::uint64_t last = order.iterations() - 1;
  const std::uint64_t next = 3 * entries - 3 * entries % ((1 << 20) + 3);
  std::uint64_t count = 0;
  for (int rank = 0; rank < ranks; ++rank) count += order.run(rank, last).count;
  EXPECT_EQ(next + count, 3 * entries);
  EXPECT_EQ(order.after(last + 1).position, 3 * entries);
  EXPECT_EQ(order.iterations(3), last + 1);
}

TEST(StridedEnd, NonsenseIsRefused) {
  EXPECT_THROW(StridedOrder(10, 1, 1, 1, {}, {.epochs = UINT64_MAX}), Error);
  EXPECT_THROW(StridedOrder(10, 2, 4, 2, {}, {.epochs = 1}).after(4), Error);
  EXPECT_NO_THROW(StridedOrder(10, 2, 4, 2, {}, {.epochs = 1}).after(3));
  EXPECT_THROW(StridedOrder(10, 2, 4).after(UINT64_MAX), Error);
  EXPECT_THROW(StridedOrder(10, 1, 1, 1, {100, {{80, 2, 4, 2, 2, 4}}}), Error);
  EXPECT_THROW(StridedOrder(10, 1, 1, 1, {100, {{80, 2, 4, 2, 3, 3}}}), Error);
  EXPECT_NO_THROW(StridedOrder(10, 1, 1, 1, {100, {{80, 2, 4, 2, 2, 3}}}));
  EXPECT_THROW(start_after(10, 2, {{.ranks = 2, .batch = 4, .iterations = 4, .epochs = 1}}), Error);
}

}  // namespace
}  // namespace forebay
