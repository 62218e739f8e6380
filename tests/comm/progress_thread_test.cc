#include "comm/progress_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "forebay/error.hpp"

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
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (calls <= 50) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(ProgressThread, SleepsUntilItIsWokenWhenThatIsAllThatPollersAskFor) {
  ProgressThread progress(milliseconds(1));
  std::atomic<int> calls = 0;
  const auto waiting = progress.add([&] {
    ++calls;
    return ProgressThread::kAnyRest;
  });
  while (calls < 1) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(50));
  const int before = calls;
  EXPECT_LE(before, 3) << "one turn, or another for having come";
  waiting.wake();
  while (calls == before) std::this_thread::sleep_for(milliseconds(1));
}

TEST(ProgressThread, RestsAsLongAsTheMostUrgentPollerSays) {
  ProgressThread progress(milliseconds(1));
  std::atomic<int> calls = 0;
  const auto patient = progress.add([] { return ProgressThread::kAnyRest; });
  const auto busy = progress.add([&] {
    ++calls;
    return calls < 10'000 ? ProgressThread::Rest(0) : ProgressThread::kAnyRest;
  });
  while (calls < 10'000) std::this_thread::sleep_for(milliseconds(1));
}

/// What is written before wake() is seen by a turn after it, whatever the thread does meanwhile.
TEST(ProgressThread, LosesNoWakeUp) {
  ProgressThread progress;
  std::atomic<int> asked = 0;
  std::atomic<int> answered = 0;
  const auto registration = progress.add([&] {
    answered = asked.load();
    return ProgressThread::kAnyRest;
  });
  for (int i = 1; i <= 20'000; ++i) {
    asked = i;
    registration.wake();
    if (i % 16 != 0) continue;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (answered < i) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << i;
      std::this_thread::yield();
    }
  }
}

TEST(ProgressThread, LetsPollersComeAndGoWhileItMakesTurnAfterTurn) {
  ProgressThread progress;
  const auto busy = progress.add([] { return ProgressThread::Rest(0); });
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    const auto guest = progress.add([] { return ProgressThread::kAnyRest; });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ProgressThread, TellsWhatItHasSpent) {
  ProgressThread progress;
  std::atomic<bool> done = false;
  const auto busy = progress.add([&] {
    const auto end = std::chrono::steady_clock::now() + milliseconds(30);
    while (!done && std::chrono::steady_clock::now() < end) {
    }
    done = true;
    return ProgressThread::kAnyRest;
  });
  const auto spent = [&] {
    const ProcessUsage usage = progress.usage();
    return usage.user_seconds + usage.system_seconds;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done || spent() < 0.001) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(ProgressThread, IsSharedByAllWhoAskAndEndsWithTheLast) {
  auto first = progress_thread();
  const auto second = progress_thread();
  EXPECT_EQ(first, second);
  const std::weak_ptr<ProgressThread> watched = first;
  first.reset();
  EXPECT_FALSE(watched.expired());
}

TEST(ProgressThread, IsPlacedByTheFirstWhoCares) {
  const auto cores = available_cores();
  const Placement first{.cores = {cores.front()}};
  const auto anywhere = progress_thread();
  EXPECT_TRUE(anywhere->place(first));
  EXPECT_TRUE(anywhere->place(first));
  EXPECT_TRUE(anywhere->place({})) << "no wish is always fulfilled";
  if (cores.size() > 1) {
    EXPECT_FALSE(anywhere->place(Placement{.cores = {cores.back()}}));
  }
  ProgressThread other;
  EXPECT_THROW(other.place(Placement{.cores = {60'000}}), Error);
}

}  // namespace
}  // namespace forebay
