// Roots that take turns, over real MPI; tests/read holds many more of these races.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "comm/progress_thread.hpp"
#include "core/clock.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/stagger_race.hpp"

namespace forebay {
namespace {

/// Ranks of other nodes share no memory, which the race needs: then each node has its own.
void race(const test::Race& race) {
  const auto world = test::world();
  const auto comm = world->split_by_node();
  ProgressThread progress(std::chrono::milliseconds(5));
  test::check_race(*comm, race, &progress);
  world->barrier();
}

class MpiStagger : public ::testing::TestWithParam<StaggerBy> {
 protected:
  void SetUp() override {
    if (test::world()->size() > 4) GTEST_SKIP() << "four ranks are enough";
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, MpiStagger, ::testing::Values(StaggerBy::token, StaggerBy::ticket),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(MpiStagger, NoMoreThanNReadAtOnceAndAllGetTheirTurns) {
  for (const int group : {1, 3}) {
    race({.stagger = {.by = GetParam(), .group = group, .end_turn = 30},
          .first_turn = 20,
          .end_turn = 30,
          .some_have_nothing = true});
  }
}

TEST_P(MpiStagger, ARootThatFailsWhileItReadsEndsAll) {
  race({.stagger = {.by = GetParam(), .group = 2}, .failing = 0, .odd_turn = 7});
}

TEST_P(MpiStagger, ARootThatLeavesHoldsNobodyUp) {
  const int last = test::world()->size() - 1;
  race({.stagger = {.by = GetParam(), .group = 2, .end_turn = 20}, .leaving = last, .odd_turn = 5});
  race({.stagger = {.by = GetParam(), .group = 1, .end_turn = 20}, .leaving = 0, .odd_turn = 5});
}

TEST_P(MpiStagger, TheBestGroupIsFoundWhileReading) {
  race({.stagger = {.by = GetParam(), .end_turn = 12}, .end_turn = 12});
}

/// Also between nodes, where nothing is shared.
TEST_P(MpiStagger, TurnsGoRoundAllNodes) {
  const auto world = test::world();
  ProgressThread progress(std::chrono::milliseconds(5));
  for (const int group : {1, 2, StaggerOptions::kAuto}) {
    const auto stagger =
        make_stagger(*world, {.by = GetParam(), .group = group, .end_turn = 12}, &progress);
    RecordProperty("stagger", stagger->describe());
    for (std::uint64_t turn = 0; turn < 12; ++turn) {
      StaggerTurn mine(*stagger, turn, {});
      ASSERT_TRUE(mine.granted());
      mine.count(1);
      mine.end();
    }
    world->barrier();
  }
}

/// What a ticket costs when nobody has to wait, while rank 0 is outside MPI.
TEST(MpiCounter, IsReachedWhileRankZeroIsBusy) {
  const auto world = test::world();
  ProgressThread progress(std::chrono::milliseconds(5));
  const auto counter = world->share_counter();
  const auto serving = progress.add([&counter] { return counter->serve(); });
  world->barrier();
  if (world->rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } else {
    const double begin = now_seconds();
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(counter->fetch_add(1, {}).has_value());
    EXPECT_LT(now_seconds() - begin, 5.0);
    RecordProperty("ms a draw", std::to_string((now_seconds() - begin) * 200));
    RecordProperty("counter", counter->describe());
    if (world->rank() == 1 && std::getenv("FOREBAY_TEST_TELL") != nullptr) {
      std::fprintf(stderr, "%s: %.3f ms a draw\n", counter->describe().c_str(),
                   (now_seconds() - begin) * 200);
    }
  }
  world->barrier();
}

}  // namespace
}  // namespace forebay
