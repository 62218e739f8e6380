#include "pfs/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "core/clock.hpp"
#include "tests/support/scale.hpp"

namespace forebay::pfs {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(PfsDeadlineQueue, NothingIsDoneBeforeItsTime) {
  DeadlineQueue queue(2);
  const int count = test::random_cases(200);
  std::latch all(count);
  std::atomic<int> early = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t time_ns = now_ns() + (i * 7919 % 50) * kMs;
    queue.push(time_ns, [&, time_ns](bool due) {
      if (!due || now_ns() < time_ns) ++early;
      all.count_down();
    });
  }
  all.wait();
  EXPECT_EQ(early, 0);
}

TEST(PfsDeadlineQueue, OneThreadKeepsTheOrderOfTimes) {
  DeadlineQueue queue(1);
  const std::int64_t begin = now_ns() + 20 * kMs;
  std::vector<int> order;
  std::latch all(4);
  for (const int place : {3, 1, 2, 0}) {
    queue.push(begin + place * kMs, [&, place](bool) {
      order.push_back(place);
      all.count_down();
    });
  }
  all.wait();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

TEST(PfsDeadlineQueue, AnEarlierItemWakesASleeper) {
  DeadlineQueue queue(1);
  queue.push(now_ns() + 3'600'000 * kMs, [](bool) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it sleeps for the hour by now
  std::latch done(1);
  queue.push(now_ns() + 1 * kMs, [&](bool) { done.count_down(); });
  done.wait();
}

TEST(PfsDeadlineQueue, StopCallsWhatWaitsOnceAndRefusesNothing) {
  DeadlineQueue queue(2);
  std::atomic<int> due = 0;
  std::atomic<int> dropped = 0;
  const auto count = [&](bool in_time) { ++(in_time ? due : dropped); };
  for (int i = 0; i < 100; ++i) queue.push(now_ns() + 3'600'000 * kMs, count);
  queue.stop();
  queue.push(0, count);
  queue.stop();
  EXPECT_EQ(due, 0);
  EXPECT_EQ(dropped, 101);
}

}  // namespace
}  // namespace forebay::pfs
