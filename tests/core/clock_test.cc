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
