// Taking turns to read, with ranks as threads. tests/mpi holds the same races over MPI.
#include "read/stagger.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "forebay/error.hpp"
#include "read/token_stagger.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/stagger_race.hpp"

namespace forebay {
namespace {

class StaggerRaces : public ::testing::TestWithParam<StaggerBy> {
 protected:
  /// The same race for 1-8 roots and n = 1-4.
  static void for_all(const std::function<void(test::Race&, int roots, std::mt19937_64&)>& change) {
    for (int round = 0; round < test::random_cases(1); ++round) {
      for (int roots = 1; roots <= 8; ++roots) {
        for (int group = 1; group <= 4; ++group) {
          std::mt19937_64 random(static_cast<std::uint64_t>(1000 * round + 10 * roots + group));
          test::Race race{.stagger = {.by = GetParam(), .group = group}, .seed = random()};
          change(race, roots, random);
          run_ranks(roots, 0, [&](const auto& comm) { test::check_race(*comm, race, nullptr); });
        }
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, StaggerRaces,
                         ::testing::Values(StaggerBy::none, StaggerBy::token, StaggerBy::ticket),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST_P(StaggerRaces, NoMoreThanNReadAtOnceAndAllGetTheirTurns) {
  for_all([](test::Race& race, int, std::mt19937_64&) { race.stagger.end_turn = race.end_turn; });
}

TEST_P(StaggerRaces, TheEndOfDataNeedNotBeKnown) {
  for_all([](test::Race& race, int, std::mt19937_64&) { race.end_turn = 5; });
}

TEST_P(StaggerRaces, ARunMayBeResumedAtAnyTurn) {
  for_all([](test::Race& race, int, std::mt19937_64& random) {
    race.first_turn = random() % 100000;
    race.end_turn = race.first_turn + 1 + random() % 7;
    race.stagger.end_turn = race.end_turn;
  });
}

TEST_P(StaggerRaces, RootsWithNothingToReadHoldNobodyUp) {
  for_all([](test::Race& race, int, std::mt19937_64&) { race.some_have_nothing = true; });
}

TEST_P(StaggerRaces, ARootThatFailsWhileItReadsEndsAll) {
  for_all([](test::Race& race, int roots, std::mt19937_64& random) {
    race.failing = static_cast<int>(random() % static_cast<std::uint64_t>(roots));
    race.odd_turn = random() % race.end_turn;
  });
}

TEST_P(StaggerRaces, ARootThatLeavesHoldsNobodyUp) {
  for_all([](test::Race& race, int roots, std::mt19937_64& random) {
    race.leaving = static_cast<int>(random() % static_cast<std::uint64_t>(roots));
    race.odd_turn = random() % race.end_turn;
  });
}

TEST_P(StaggerRaces, TheBestGroupIsFoundWhileReading) {
  for_all([](test::Race& race, int roots, std::mt19937_64& random) {
    race.stagger.group = StaggerOptions::kAuto;
    race.end_turn = race.stagger.end_turn = 14;
    if (random() % 2 == 0) return;
    race.leaving = static_cast<int>(random() % static_cast<std::uint64_t>(roots));
    race.odd_turn = random() % race.end_turn;
  });
}

TEST_P(StaggerRaces, AFailureEndsTheSearchForTheBestGroup) {
  for_all([](test::Race& race, int roots, std::mt19937_64& random) {
    race.stagger.group = StaggerOptions::kAuto;
    race.end_turn = 14;
    race.failing = static_cast<int>(random() % static_cast<std::uint64_t>(roots));
    race.odd_turn = random() % race.end_turn;
  });
}

TEST_P(StaggerRaces, NobodyWaitsForTheFirstTurnOfOthersInTheSearch) {
  constexpr int kRoots = 3;
  run_ranks(kRoots, 0, [](const auto& comm) {
    const StaggerOptions options{.by = GetParam(), .limit = std::chrono::milliseconds(20000)};
    const auto stagger = make_stagger(*comm, options, nullptr);
    const auto take_turn = [&](std::uint64_t turn) {
      StaggerTurn mine(*stagger, turn, {});
      EXPECT_TRUE(mine.granted());
      mine.count(1000);
    };
    for (int first = 0; first < kRoots; ++first) {  // each is done before the next one begins
      if (comm->rank() == first) take_turn(0);
      if (comm->rank() == first) take_turn(1);
      comm->barrier();
    }
    for (std::uint64_t turn = 2; turn < 8; ++turn) take_turn(turn);
    comm->barrier();
  });
}

TEST(TokenRing, EveryRootIsInOneRingOfItsLabel) {
  for (int roots = 1; roots <= 20; ++roots) {
    for (int group = 1; group <= roots; ++group) {
      std::set<int> seen;
      for (int label = 0; label < group; ++label) {
        ASSERT_TRUE(TokenRing::of(label, roots, group).first);
        int root = label;
        do {
          const TokenRing ring = TokenRing::of(root, roots, group);
          EXPECT_EQ(root % group, label);
          EXPECT_TRUE(seen.insert(root).second);
          EXPECT_EQ(TokenRing::of(ring.after, roots, group).before, root);
          EXPECT_EQ(ring.last, ring.after <= root);
          root = ring.after;
        } while (root != label);
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(roots));
    }
  }
}

TEST(Stagger, AWaitHasADeadline) {
  run_ranks(2, 0, [](const auto& comm) {
    for (const auto by : {StaggerBy::token, StaggerBy::ticket}) {
      const auto stagger = make_stagger(
          *comm, {.by = by, .group = 1, .limit = std::chrono::milliseconds(50)}, nullptr);
      if (comm->rank() == 0) stagger->acquire(0, {});
      comm->barrier();
      if (comm->rank() == 1) {
        EXPECT_THROW(stagger->acquire(0, {}), Error);
      }
      comm->barrier();
    }
  });
}

TEST(Stagger, ATurnThatDiffersIsAnError) {
  run_ranks(2, 0, [](const auto& comm) {
    const auto stagger = make_stagger(*comm, {.by = StaggerBy::token, .group = 1}, nullptr);
    if (comm->rank() == 0) {
      const StaggerTurn mine(*stagger, 3, {});
    } else {
      EXPECT_THROW(stagger->acquire(4, {}), Error);
    }
    comm->barrier();
  });
}

TEST(Stagger, AnExceptionGivesTheTokenBack) {
  run_ranks(2, 0, [](const auto& comm) {
    const auto stagger = make_stagger(*comm, {.by = StaggerBy::token, .group = 1}, nullptr);
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      try {
        const StaggerTurn mine(*stagger, turn, {});
        ASSERT_TRUE(mine.granted());
        throw Error(ErrorKind::io, "no disk");
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::io);
      }
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
