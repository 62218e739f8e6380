#include "core/clock.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace forebay {
namespace {

using std::chrono::milliseconds;

TEST(Clock, GoesForward) {
  const std::int64_t before = now_ns();
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_GE(now_ns() - before, 2'000'000);
  EXPECT_NEAR(now_seconds(), static_cast<double>(now_ns()) * 1e-9, 1.0);
}

TEST(WaitedTime, AddsUpWhatLiesBetweenLooks) {
  const auto begin = WaitedTime::Clock::now();
  WaitedTime waited(begin);
  EXPECT_EQ(waited.step(begin + milliseconds(300)), milliseconds(300));
  EXPECT_EQ(waited.step(begin + milliseconds(1200)), milliseconds(900));
  EXPECT_EQ(waited.total(), milliseconds(1200));
}

TEST(WaitedTime, CountsTheTimeInWhichTheProcessWasStoppedAsASecond) {
  const auto begin = WaitedTime::Clock::now();
  WaitedTime waited(begin);
  EXPECT_EQ(waited.step(begin + std::chrono::hours(2)), milliseconds(1000));
  EXPECT_EQ(waited.step(begin + std::chrono::hours(2) + milliseconds(10)), milliseconds(10));
  EXPECT_EQ(waited.total(), milliseconds(1010));
}

TEST(Stopwatch, AddsUpOverScopes) {
  double total = 0;
  for (int i = 0; i < 3; ++i) {
    const Stopwatch stopwatch(total);
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_GE(total, 0.006);
}

TEST(Stopwatch, CountsAScopeThatThrows) {
  double total = 0;
  try {
    const Stopwatch stopwatch(total);
    std::this_thread::sleep_for(milliseconds(2));
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
  }
  EXPECT_GE(total, 0.002);
}

}  // namespace
}  // namespace forebay
