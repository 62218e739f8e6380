// What a rank reads, buffer by buffer: it serves every draw of every epoch, in order, and ends with
// the run.
#include "loader/draw_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "forebay/error.hpp"

namespace forebay {
namespace {

OrderOptions shuffled(std::uint64_t entries, int ranks, std::uint64_t batch) {
  OrderOptions options;
  options.order = OrderName::shuffled;
  options.entries = entries;
  options.ranks = ranks;
  options.batch = batch;
  options.window = 3;
  return options;
}

RunLimits epochs(std::uint64_t count) { return {.start = {}, .epochs = count}; }

TEST(RunEpochs, FollowEachOtherUpToTheirLimit) {
  RunEpochs run(shuffled(100, 1, 10), epochs(3));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto next = run.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->order.epoch(), epoch);
    EXPECT_EQ(next->begin, 0U);
    EXPECT_EQ(next->end, 10U);
  }
  EXPECT_FALSE(run.next());
  EXPECT_FALSE(run.next());
}

TEST(RunEpochs, ALimitOfIterationsMayLieInsideOne) {
  RunEpochs run(shuffled(100, 1, 10), {.start = {}, .iterations = 14});
  EXPECT_EQ(run.next()->end, 10U);
  EXPECT_EQ(run.next()->end, 4U);
  EXPECT_FALSE(run.next());
}

TEST(RunEpochs, AResumedOneGoesOnOrIsDealtAnew) {
  const OrderProgress stopped{.epoch = 2, .done = {{2, 20, 1}, {1, 10, 3}}};
  RunEpochs same(shuffled(100, 1, 10), {.start = stopped, .epochs = 4});
  const auto goes_on = same.next();
  EXPECT_EQ(goes_on->order.epoch(), 2U);
  EXPECT_EQ(goes_on->begin, 3U);
  EXPECT_EQ(goes_on->before, (std::vector<Segment>{{2, 20, 1}}));
  EXPECT_EQ(same.next()->begin, 0U);
  RunEpochs other(shuffled(100, 4, 10), {.start = stopped, .epochs = 4});
  const auto anew = other.next();
  EXPECT_EQ(anew->begin, 0U);
  EXPECT_EQ(anew->end, 5U);
  EXPECT_EQ(anew->before, stopped.done);
}

TEST(RunEpochs, WhatIsDroppedCountsWhenTheEpochIsOver) {
  OrderOptions options = shuffled(105, 1, 10);
  options.end = OrderEnd::drop;
  RunEpochs run(options, epochs(2));
  run.next();
  EXPECT_EQ(run.dropped(), 0U);
  run.next();
  EXPECT_EQ(run.dropped(), 5U);
  run.next();
  EXPECT_EQ(run.dropped(), 10U);
}

/// Whether the buffers of `rank` serve all of its draws of `count` epochs, with samples in place.
void expect_complete(const OrderOptions& options, int rank, std::uint64_t count,
                     DrawList::Begin begin = DrawList::Begin::whole) {
  DrawList feed(RunEpochs(options, epochs(count)), rank, 1000, begin);
  std::uint64_t number = 0;
  for (std::uint64_t epoch = 0; epoch < count; ++epoch) {
    const EpochOrder order(options, epoch);
    for (std::uint64_t draw = 0; draw < order.draws(rank); ++draw) {
      while (!feed.at(number)->serves(epoch, draw)) feed.forget(++number, 0);
      std::vector<std::uint64_t> slots(1000, UINT64_MAX);
      for (const SampleRun& run : feed.runs({.window = number})) {
        for (std::uint64_t i = 0; i < run.count; ++i) slots[run.entry + i] = run.sample + i;
      }
      const std::uint64_t slot = order.place(rank, draw).slot - feed.at(number)->first_slot;
      ASSERT_EQ(slots.at(slot), order.draw(rank, draw).sample);
    }
  }
  EXPECT_EQ(feed.at(number + 1), nullptr);
  EXPECT_EQ(feed.iterations(number + 1), 0U);
}

TEST(DrawList, ServesEveryDraw) {
  for (const OrderEnd end : {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap}) {
    for (int rank = 0; rank < 3; ++rank) {
      for (const auto begin : {DrawList::Begin::whole, DrawList::Begin::small}) {
        OrderOptions options = shuffled(101, 3, 10);
        options.end = end;
        expect_complete(options, rank, 3, begin);
        options.reuse = 2;
        expect_complete(options, rank, 3, begin);
        options.reuse = 1;
        options.order = OrderName::grouped;
        options.group = 7;
        expect_complete(options, rank, 3, begin);
      }
    }
  }
}

/// Draws of the first buffers, as many as there are up to `most`.
std::vector<std::uint64_t> first_counts(DrawList& feed, std::size_t most) {
  std::vector<std::uint64_t> counts;
  while (counts.size() < most && feed.at(counts.size())) {
    counts.push_back(feed.at(counts.size())->count);
  }
  return counts;
}

TEST(DrawList, TheFirstBatchNeedNotWaitForItsWholeWindow) {
  using Counts = std::vector<std::uint64_t>;
  OrderOptions options = shuffled(1000, 1, 10);
  options.window = 8;
  DrawList whole(RunEpochs(options, epochs(2)), 0, 1000);
  EXPECT_EQ(first_counts(whole, 3), (Counts{80, 80, 80}));
  DrawList small(RunEpochs(options, epochs(2)), 0, 1000, DrawList::Begin::small);
  EXPECT_EQ(first_counts(small, 6), (Counts{10, 10, 20, 40, 80, 80}));
  EXPECT_EQ(first_counts(small, 100).size(), 13U + 3 + 13)
      << "later epochs begin as they always do";
}

// What was consumed before is not read again.
TEST(DrawList, PiecesOfARunThatGoesOnBeginWhereItStopped) {
  OrderOptions options = shuffled(1000, 1, 10);
  options.window = 8;
  const OrderProgress stopped{.epoch = 0, .done = {{1, 10, 5}}};
  DrawList feed(RunEpochs(options, {.start = stopped, .epochs = 1}), 0, 1000,
                DrawList::Begin::small);
  EXPECT_EQ(first_counts(feed, 4), (std::vector<std::uint64_t>{10, 10, 10, 80}));
  EXPECT_EQ(feed.at(0)->first, 50U);
}

TEST(DrawList, PiecesEndWhereTheRunDoes) {
  OrderOptions options = shuffled(1000, 1, 10);
  options.window = 8;
  DrawList feed(RunEpochs(options, {.start = {}, .iterations = 3}), 0, 1000,
                DrawList::Begin::small);
  EXPECT_EQ(first_counts(feed, 9), (std::vector<std::uint64_t>{10, 10, 10}));
}

TEST(DrawList, ReadsInTheOrderOfTheFile) {
  DrawList feed(RunEpochs(shuffled(1000, 1, 50), epochs(1)), 0, 1000);
  for (std::uint64_t number = 0; feed.at(number); ++number) {
    const auto runs = feed.runs({.window = number});
    EXPECT_TRUE(std::ranges::is_sorted(runs, {}, &SampleRun::sample));
  }
}

TEST(DrawList, NothingIsReadBehindTheLastIteration) {
  DrawList feed(RunEpochs(shuffled(1000, 1, 10), {.start = {}, .iterations = 6}), 0, 1000);
  EXPECT_TRUE(feed.at(1)) << "iterations 3 to 5";
  EXPECT_FALSE(feed.at(2));
}

TEST(DrawList, ARankThatNeverGetsASampleHasAnEnd) {
  std::set<int> without;
  for (int rank = 0; rank < 4; ++rank) {
    DrawList feed(RunEpochs(shuffled(1, 4, 4), {.start = {}}), rank, 1000);
    if (!feed.at(0)) without.insert(rank);
  }
  EXPECT_EQ(without.size(), 3U);
}

TEST(DrawList, TwoThreadsSeeTheSame) {
  DrawList feed(RunEpochs(shuffled(2000, 1, 10), epochs(5)), 0, 1000);
  const auto walk = [&feed] {
    std::uint64_t sum = 0;
    for (std::uint64_t number = 0; feed.at(number); ++number) {
      sum = sum * 31 + feed.runs({.window = number}).front().sample;
    }
    return sum;
  };
  std::uint64_t other = 0;
  std::jthread thread([&] { other = walk(); });
  const std::uint64_t mine = walk();
  thread.join();
  EXPECT_EQ(mine, other);
}

TEST(DrawList, ABufferBeyondTheStageIsAnError) {
  DrawList feed(RunEpochs(shuffled(100, 1, 10), epochs(1)), 0, 29);
  EXPECT_THROW(feed.at(0), Error);
}

}  // namespace
}  // namespace forebay
