// An epoch that stops anywhere and goes on with other ranks and batches delivers every sample as
// often as one that never stopped.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "tests/order/order_cases.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using test::Counts;
using test::Random;

/// A run that changes its ranks and remembers what it has drawn.
class ResumedEpoch {
 public:
  ResumedEpoch(OrderOptions options, std::uint64_t epoch)
      : options_(std::move(options)), progress_{.epoch = epoch, .done = {}} {}

  const OrderOptions& options() const { return options_; }
  EpochOrder order() const { return {options_, progress_.epoch, progress_.done}; }
  /// Stays where it is if the others could not begin an epoch by themselves.
  void move_to(int ranks, std::uint64_t batch) {
    OrderOptions options = options_;
    options.ranks = ranks;
    options.batch = batch;
    if (test::is_possible(options)) options_ = options;
  }
  /// Delivers `iterations`, but not beyond the end of the epoch; tells whether it has been reached.
  bool take(std::uint64_t iterations) {
    const EpochOrder order = this->order();
    const std::uint64_t first = order.first_iteration();
    const std::uint64_t end = std::min(order.steps(), first + iterations);
    const test::Drawn drawn = test::draw_all(order, first, end);
    test::add(drawn_, drawn.samples);
    deliveries_ += drawn.deliveries;
    dropped_ = order.dropped();
    const OrderProgress before = progress_;
    progress_ = advance(options_, progress_, end - first);
    if (end == order.steps()) {
      EXPECT_EQ(progress_, (OrderProgress{.epoch = before.epoch + 1, .done = {}}));
    } else {
      EXPECT_EQ(progress_.epoch, before.epoch);
    }
    return end == order.steps();
  }
  const Counts& drawn() const { return drawn_; }
  std::uint64_t deliveries() const { return deliveries_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  OrderOptions options_;
  OrderProgress progress_;
  Counts drawn_;
  std::uint64_t deliveries_ = 0;
  std::uint64_t dropped_ = 0;
};

void expect_whole(const ResumedEpoch& epoch, const OrderOptions& options) {
  const Counts whole = test::wanted(options);
  std::uint64_t deliveries = 0;
  for (const auto& [sample, count] : whole) deliveries += count;
  EXPECT_EQ(epoch.deliveries() + epoch.dropped(), deliveries);
  if (options.end == OrderEnd::drop) {
    EXPECT_TRUE(test::within(epoch.drawn(), whole));
  } else {
    EXPECT_EQ(epoch.drawn(), whole);
  }
}

TEST(EpochOrderResume, NothingIsRepeatedOrLostWhereverARunStops) {
  test::for_random_orders(21, test::random_cases(200), [](OrderOptions options, Random& random) {
    ResumedEpoch epoch(options, 6);
    const int most_ranks = options.order == OrderName::grouped ? options.ranks : 8;
    bool ended = epoch.take(random.between(0, epoch.order().steps()));
    for (int i = 0; i < 4 && !ended; ++i) {
      const int ranks = static_cast<int>(random.between(1, static_cast<std::uint64_t>(most_ranks)));
      epoch.move_to(ranks, static_cast<std::uint64_t>(ranks) * random.between(1, 5));
      ended = epoch.take(random.between(0, 1 + epoch.order().steps() / 2));
    }
    if (!ended) ended = epoch.take(UINT64_MAX / 2);
    ASSERT_TRUE(ended);
    expect_whole(epoch, options);
  });
}

TEST(EpochOrderResume, FourToTwoToThreeToSixRanks) {
  for (const OrderName kind : test::kAllKinds) {
    for (const std::uint64_t stop : {0, 1, 7, 12}) {
      OrderOptions options{.order = kind, .entries = 1009, .ranks = 4, .batch = 24, .seed = 3};
      options.group = kind == OrderName::grouped ? 31 : 0;
      options.ratio = 0.4;
      if (kind == OrderName::listed) {
        Random random(4);
        options.ids = test::random_list(random, 1009);
      }
      ResumedEpoch epoch(options, 0);
      bool ended = epoch.take(stop);
      for (const int ranks : {2, 3, 6}) {
        if (ended) break;
        epoch.move_to(ranks, 24);
        EXPECT_EQ(epoch.options().ranks, ranks);
        ended = epoch.take(ranks == 6 ? UINT64_MAX / 2 : stop);
      }
      EXPECT_TRUE(ended);
      expect_whole(epoch, options);
    }
  }
}

TEST(EpochOrderResume, TheSameRanksGoOnIdentically) {
  test::for_random_orders(22, 60, [](const OrderOptions& options, Random& random) {
    const EpochOrder whole(options, 5);
    OrderProgress progress{.epoch = 5, .done = {}};
    for (int i = 0; i < 2; ++i) {  // twice in one epoch
      const std::uint64_t left =
          whole.steps() - EpochOrder(options, 5, progress.done).first_iteration();
      const std::uint64_t iterations = random.between(0, left - 1);
      progress = advance(options, progress, iterations);
      ASSERT_LE(progress.done.size(), 1U);
      const EpochOrder rest(options, progress.epoch, progress.done);
      ASSERT_EQ(rest.steps(), whole.steps());
      for (int rank = 0; rank < options.ranks; ++rank) {
        ASSERT_EQ(rest.draws(rank), whole.draws(rank));
        for (std::uint64_t draw = 0; draw < whole.draws(rank); ++draw) {
          ASSERT_EQ(rest.draw(rank, draw), whole.draw(rank, draw));
        }
      }
    }
  });
}

TEST(EpochOrderResume, AnEpochThatIsFinishedIsNotResumed) {
  const OrderOptions options{
      .order = OrderName::shuffled, .entries = 100, .ranks = 4, .batch = 16, .end = OrderEnd::drop};
  EXPECT_EQ(advance(options, {}, 6), (OrderProgress{.epoch = 1, .done = {}}));
  EXPECT_EQ(advance(options, {}, 15), (OrderProgress{.epoch = 2, .done = {{4, 16, 3}}}));
  EXPECT_EQ(advance(options, {.epoch = 1, .done = {{2, 16, 1}}}, 5),
            (OrderProgress{.epoch = 2, .done = {}}))
      << "84 samples are five batches";
}

TEST(EpochOrderResume, ARankThatJoinsTheLastSamplesGetsNothingAndStaysInStep) {
  OrderOptions options{.order = OrderName::grouped, .entries = 64, .ranks = 2, .batch = 4};
  options.group = 8;
  const OrderProgress progress = advance(options, {}, 15);
  options.ranks = 8;
  options.batch = 8;
  const EpochOrder order(options, progress.epoch, progress.done);
  EXPECT_EQ(order.steps(), 1U);
  EXPECT_EQ(test::draw_all(order, 0, 1).deliveries, 4U);
}

TEST(EpochOrderResume, NonsenseIsRefused) {
  const OrderOptions options{.order = OrderName::shuffled, .entries = 100, .ranks = 4, .batch = 16};
  EXPECT_NO_THROW(EpochOrder(options, 0, {{4, 16, 7}}));
  EXPECT_THROW(EpochOrder(options, 0, {{4, 16, 8}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{2, 16, 8}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{0, 16, 1}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{17, 16, 1}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{1 << 30, std::uint64_t{1} << 32, 0}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{4, UINT64_MAX, 1}}), Error);
  EXPECT_THROW(EpochOrder(options, 0, {{2, 16, UINT64_MAX}}), Error);
  const std::vector<Segment> often(5000, {1, 1, 0});
  EXPECT_THROW(EpochOrder(options, 0, often), Error);
  const std::vector<Segment> wide(17, {1 << 20, 1 << 20, 0});
  EXPECT_THROW(EpochOrder(options, 0, wide), Error);
}

}  // namespace
}  // namespace forebay
