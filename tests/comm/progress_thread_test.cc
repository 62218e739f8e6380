#include "comm/progress_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace forebay {
namespace {

using std::chrono::milliseconds;

TEST(ProgressThread, CallsPollersUntilTheyLeave) {
  ProgressThread progress(milliseconds(1));
  std::atomic<int> calls = 0;
  {
    const auto registration = progress.add([&] {
      ++calls;
      return false;
    });
    while (calls < 3) std::this_thread::sleep_for(milliseconds(1));
  }
  const int after = calls;
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(calls, after) << "a poller that has left is not called";
}

TEST(ProgressThread, SurvivesAPollerThatThrows) {
  ProgressThread progress(milliseconds(1));
  std::atomic<int> calls = 0;
  const auto bad = progress.add([]() -> bool { throw std::runtime_error("broken"); });
  const auto good = progress.add([&] {
    ++calls;
    return false;
  });
  while (calls < 3) std::this_thread::sleep_for(milliseconds(1));
}

TEST(ProgressThread, EndsAtOnceWhileItSleeps) {
  const auto progress = std::make_unique<ProgressThread>(std::chrono::hours(1));
  std::this_thread::sleep_for(milliseconds(5));
  SUCCEED() << "the destructor must not wait for the hour";
}

TEST(ProgressThread, RestsNoLongerThanAPollerCanBear) {
  ProgressThread progress(std::chrono::hours(1));
  std::atomic<int> calls = 0;
  const auto patient = progress.add([] { return false; });
  const auto eager = progress.add(
      [&] {
        ++calls;
        return false;
      },
      std::chrono::microseconds(200));
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_GT(calls, 50);
}

}  // namespace
}  // namespace forebay
