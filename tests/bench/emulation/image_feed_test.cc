#include "bench/command/emulation/image_feed.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace forebay::emulation {
namespace {

FeedOptions small(Input input, unsigned threads) {
  return {.input = input, .threads = threads, .batch = 3, .side = 32, .files = 2};
}

TEST(ImageFeed, DeliversBatchAfterBatch) {
  for (const Input input : {Input::real, Input::synthetic, Input::none}) {
    for (const unsigned threads : {1U, 5U}) {
      ImageFeed feed(small(input, threads));
      for (int i = 0; i < 10; ++i) feed.next();
      EXPECT_EQ(feed.images(), 30U);
    }
  }
}

TEST(ImageFeed, RestsWhenItIsAhead) {
  ImageFeed feed(small(Input::real, 2));
  feed.next();
  std::int64_t before = -1;
  std::int64_t after = feed.active_ns();
  for (int i = 0; i < 200 && before != after; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    before = after;
    after = feed.active_ns();
  }
  EXPECT_EQ(before, after);
  EXPECT_GT(after, 0);
  EXPECT_GT(feed.cost().user_seconds, 0);
}

TEST(ImageFeed, NeedsNobodyWithoutInput) {
  ImageFeed feed(small(Input::none, 2));
  feed.next();
  EXPECT_EQ(feed.active_ns(), 0);
  EXPECT_EQ(feed.cost().voluntary_switches, 0U);
}

TEST(ImageFeed, EndsWhileItsThreadsAreAtWork) {
  for (int i = 0; i < 4; ++i) {
    ImageFeed feed(small(Input::real, 4));
    if (i % 2 == 1) feed.next();
  }
}

}  // namespace
}  // namespace forebay::emulation
