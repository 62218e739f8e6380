// Roots that take turns, over any communicator: unequal work, few buffers, failures, early leavers.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

#include "read/stagger.hpp"

namespace forebay::test {

struct Race {
  StaggerOptions stagger;
  std::uint64_t first_turn = 0;
  std::uint64_t end_turn = 20;
  std::uint64_t seed = 1;
  int longest_work_us = 300;
  bool some_have_nothing = false;  ///< every third root reads nothing
  int failing = -1;                ///< this root throws while it reads
  int leaving = -1;                ///< this root leaves without a word
  std::uint64_t odd_turn = 0;      ///< when it does
};

/// What the roots of a race share. All bytes zero at the beginning.
struct RaceMemory {
  static constexpr std::size_t kRoots = 64;
  std::atomic<int> holding;
  std::atomic<int> most_holding;
  std::atomic<int> failed;
  std::array<std::atomic<std::uint64_t>, kRoots> done;  ///< turns, by root; huge when it has left
};

class Racer {
 public:
  Racer(Communicator& comm, const Race& race, RaceMemory& memory)
      : comm_(comm), race_(race), memory_(memory), random_(race.seed * 1000 + comm.rank()) {}

  /// Returns the number of turns that this root was granted.
  std::uint64_t run(Stagger& stagger) {
    std::uint64_t granted = 0;
    for (std::uint64_t turn = race_.first_turn; turn < race_.end_turn; ++turn) {
      if (comm_.rank() == race_.leaving && turn == race_.odd_turn) break;
      if (!wait_for_buffer(turn)) break;
      StaggerTurn mine(stagger, turn, [this] { return memory_.failed != 0; });
      if (!mine.granted()) break;
      ++granted;
      read(turn);
      mine.count(1000);
      mine.end();
      memory_.done[static_cast<std::size_t>(comm_.rank())] = turn + 1;
    }
    return granted;
  }

 private:
  /// Two buffers: nobody is two turns ahead of the slowest.
  bool wait_for_buffer(std::uint64_t turn) {
    for (;;) {
      if (memory_.failed != 0) return false;
      std::uint64_t slowest = turn;
      for (int root = 0; root < comm_.size(); ++root) {
        slowest = std::min<std::uint64_t>(slowest, memory_.done[static_cast<std::size_t>(root)]);
      }
      if (slowest + 2 > turn || turn < race_.first_turn + 2) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  void read(std::uint64_t turn) {
    const int holding = ++memory_.holding;
    int most = memory_.most_holding;
    while (most < holding && !memory_.most_holding.compare_exchange_weak(most, holding)) {
    }
    const bool idle = race_.some_have_nothing && comm_.rank() % 3 == 2;
    const int work = std::uniform_int_distribution<int>(0, race_.longest_work_us)(random_);
    if (!idle) std::this_thread::sleep_for(std::chrono::microseconds(work));
    --memory_.holding;
    if (comm_.rank() == race_.failing && turn == race_.odd_turn) throw std::runtime_error("disk");
  }

  Communicator& comm_;
  const Race& race_;
  RaceMemory& memory_;
  std::mt19937_64 random_;
};

/// Collective over ranks that share memory. All must end, and no more than allowed read at once.
inline void check_race(Communicator& comm, const Race& race, ProgressThread* progress) {
  ASSERT_LE(static_cast<std::size_t>(comm.size()), RaceMemory::kRoots);
  const auto shared = comm.share(sizeof(RaceMemory), SharedMemoryKind::posix);
  shared->reserve(0, sizeof(RaceMemory));
  if (comm.rank() == 0) new (shared->bytes().data()) RaceMemory();
  comm.barrier();
  auto& memory = *std::launder(reinterpret_cast<RaceMemory*>(shared->bytes().data()));
  auto& done = memory.done[static_cast<std::size_t>(comm.rank())];
  done = race.first_turn;
  comm.barrier();
  std::uint64_t granted = 0;
  {
    const auto stagger = make_stagger(comm, race.stagger, progress);
    EXPECT_FALSE(stagger->describe().empty());
    try {
      granted = Racer(comm, race, memory).run(*stagger);
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "disk");
      memory.failed = 1;
    }
    done = ~std::uint64_t{0} / 2;
  }
  comm.barrier();
  if (race.failing < 0 && race.leaving != comm.rank()) {
    EXPECT_EQ(granted, race.end_turn - race.first_turn);
  }
  const int group = race.stagger.group == StaggerOptions::kAuto ? comm.size() : race.stagger.group;
  // Two buffers, and the turn that is being read: that far a root is ahead that waits no more.
  const int exceptions = race.leaving >= 0 ? 3 : 0;
  if (race.stagger.by != StaggerBy::none) {
    EXPECT_LE(memory.most_holding, group + exceptions);
  }
  comm.barrier();
}

}  // namespace forebay::test
