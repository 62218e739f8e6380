#include "core/worker_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace forebay {
namespace {

TEST(WorkerPool, CallsEveryIndexOnce) {
  for (const unsigned threads : {0U, 1U, 2U, 5U}) {
    WorkerPool pool("fb-test", threads);
    for (const std::size_t count : {0, 1, 2, 3, 100, 10'000}) {
      std::vector<std::atomic<int>> calls(count);
      pool.run(count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& of_index : calls) EXPECT_EQ(of_index, 1);
    }
  }
}

TEST(WorkerPool, SpreadsCallsOverItsThreads) {
  WorkerPool pool("fb-test", 3);
  EXPECT_EQ(pool.threads(), 3U);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> inside = 0;
  // Three calls that wait for each other end only when three threads have taken one each.
  pool.run(3, [&](std::size_t) {
    ++inside;
    while (inside < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(seen.size(), 3U);
}

TEST(WorkerPool, ThrowsWhatAPlainLoopWouldHaveThrown) {
  WorkerPool pool("fb-test", 4);
  for (int round = 0; round < 200; ++round) {
    try {
      pool.run(100, [](std::size_t i) {
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
  }
}

TEST(WorkerPool, WorksOnAfterAnError) {
  WorkerPool pool("fb-test", 2);
  EXPECT_THROW(pool.run(9, [](std::size_t) { throw std::runtime_error("bad"); }),
               std::runtime_error);
  std::atomic<int> calls = 0;
  pool.run(9, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 9);
}

TEST(WorkerPool, LeavesOutWhatComesBehindAnError) {
  WorkerPool pool("fb-test", 2);
  std::atomic<int> calls = 0;
  EXPECT_THROW(pool.run(100'000,
                        [&](std::size_t) {
                          ++calls;
                          throw std::runtime_error("bad");
                        }),
               std::runtime_error);
  EXPECT_LE(calls, 2);
}

TEST(WorkerPool, ChoosesAtLeastOneThreadAndNoMoreThanAsked) {
  EXPECT_EQ(choose_workers(7, 64, 4), 7U) << "what the user says is done";
  EXPECT_EQ(choose_workers(0, 1'000'000, 4), 1U);
  EXPECT_LE(choose_workers(0, 1, 2), 2U);
  EXPECT_GE(choose_workers(0, 0, 0), 1U);
}

}  // namespace
}  // namespace forebay
