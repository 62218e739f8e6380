#include "comm/gate.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace forebay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Turnstile {
  Gate gate;
  std::atomic<int> turn;
};

TEST(Gate, TellsWhenTheLimitHasPassed) {
  Gate gate;
  EXPECT_FALSE(gate.wait_for(milliseconds(5), [] { return false; }));
  EXPECT_TRUE(gate.wait_for(milliseconds(0), [] { return true; }));
}

TEST(Gate, LosesNoWakeUpBetweenThreads) {
  Turnstile turnstile{};
  constexpr int kTurns = 2000;
  const auto play = [&](int parity) {
    for (int turn = parity; turn < kTurns; turn += 2) {
      ASSERT_TRUE(turnstile.gate.wait_for(seconds(30), [&] { return turnstile.turn == turn; }));
      ++turnstile.turn;
      turnstile.gate.notify_all();
    }
  };
  std::jthread even(play, 0);
  std::jthread odd(play, 1);
  even.join();
  odd.join();
  EXPECT_EQ(turnstile.turn, kTurns);
}

TEST(Gate, WakesAnotherProcess) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* turnstile = new (page) Turnstile{};
  const pid_t child = fork();
  if (child == 0) {
    const bool came = turnstile->gate.wait_for(seconds(30), [&] { return turnstile->turn == 1; });
    _exit(came ? 0 : 1);
  }
  std::this_thread::sleep_for(milliseconds(20));
  turnstile->turn = 1;
  turnstile->gate.notify_all();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(page, 4096);
}

}  // namespace
}  // namespace forebay
