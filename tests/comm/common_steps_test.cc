#include "comm/common_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

const GiveUp kNever;

TEST(CommonSteps, AllTakeAStepOnceAllAreThere) {
  run_ranks(4, 0, [](const auto& comm) {
    CommonSteps steps(comm->split(0, comm->rank()));
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(steps.meet(kNever));
    comm->barrier();
  });
}

TEST(CommonSteps, NobodyTakesAStepWithoutOneThatHasLeft) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    run_ranks(3, 0, [leaver](const auto& comm) {
      CommonSteps steps(comm->split(0, comm->rank()));
      EXPECT_TRUE(steps.meet(kNever));
      if (comm->rank() == leaver) {
        steps.leave();
      } else {
        EXPECT_FALSE(steps.meet(kNever));
      }
      EXPECT_FALSE(steps.meet(kNever));
      comm->barrier();
    });
  }
}

TEST(CommonSteps, AWaitIsGivenUpThoughOthersCompute) {
  std::atomic<int> given_up = 0;
  run_ranks(3, 0, [&](const auto& comm) {
    ProgressThread progress;
    CommonSteps steps(comm->split(0, comm->rank()));
    const auto served =
        progress.add([&] { return steps.serve(); }, std::chrono::microseconds(2000));
    comm->barrier();
    if (comm->rank() == 0) {
      const double begin = now_seconds();
      while (given_up < 2 && now_seconds() - begin < 30) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(given_up, 2);
      EXPECT_FALSE(steps.meet(kNever));
    } else {
      const double begin = now_seconds();
      EXPECT_FALSE(steps.meet([begin] { return now_seconds() - begin > 0.1; }));
      ++given_up;
    }
    comm->barrier();
  });
}

// The decision is one for all, whenever who gives up.
TEST(CommonSteps, AllHearTheSame) {
  for (int round = 0; round < test::random_cases(10); ++round) {
    std::array<std::atomic<int>, 4> taken{};
    run_ranks(4, 0, [&](const auto& comm) {
      CommonSteps steps(comm->split(0, comm->rank()));
      std::mt19937 random(static_cast<unsigned>(round * 4 + comm->rank()));
      int left = static_cast<int>(random() % 200);
      while (steps.meet([&] { return --left < 0; })) {
        ++taken[static_cast<std::size_t>(comm->rank())];
        if (random() % 4 == 0) std::this_thread::yield();
      }
      steps.leave();
      comm->barrier();
    });
    for (const auto& of_rank : taken) ASSERT_EQ(of_rank, taken[0]) << round;
  }
}

TEST(CommonFile, RanksAsThreadsReadTogetherAndAlone) {
  const test::TemporaryFolder folder;
  const auto bytes = test::counting_bytes(100000);
  test::write_bytes(folder.file("data"), bytes);
  run_ranks(3, 0, [&](const auto& comm) {
    const auto file = comm->open_together(folder.file("data"));
    std::vector<std::byte> out(1000);
    const std::uint64_t offset = static_cast<std::uint64_t>(comm->rank()) * 5000;
    const FilePiece piece{.offset = offset, .into = out};
    EXPECT_EQ(file->read(99990, out), 10U);
    EXPECT_EQ(file->read(200000, out), 0U);
    file->read_all({&piece, comm->rank() == 1 ? 0U : 1U});
    if (comm->rank() != 1) {
      EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + offset));
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
