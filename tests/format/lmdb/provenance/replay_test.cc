// A replay knows where liblmdb put every page, without looking.
#include "format/lmdb/provenance/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/format/lmdb/provenance/compare_layout.hpp"
#include "tests/support/scale.hpp"

namespace forebay::lmdb {
namespace {

Recipe small_recipe() {
  Recipe recipe;
  recipe.records = 3000;
  recipe.page_size = 4096;
  recipe.key_size = 8;
  recipe.value_size = 100;
  recipe.commit_every = 70;
  return recipe;
}

testing::AssertionResult is_replayed(const Recipe& recipe) {
  const test::TemporaryFolder directory;
  Database database = test::build_and_open(recipe, directory.path());
  return test::agrees(recipe, database) << test::describe(recipe);
}

// 200 at a scale of 4.
TEST(Replay, PredictsEveryPageOfRandomDatabases) {
  test::RecipeDice dice(2'024);
  for (int i = 0; i < test::long_cases(50); ++i) {
    ASSERT_TRUE(is_replayed(dice.recipe(64 << 20, 20'000, 1000))) << "database " << i;
  }
}

TEST(Replay, PredictsEveryPageOfLargeDatabases) {
  if (test::test_scale() < 10) GTEST_SKIP() << "20 databases of up to 1 GB: at a scale of 10";
  test::RecipeDice dice(1'000);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(is_replayed(dice.recipe(1 << 30, 2'000'000, 20'000))) << "database " << i;
  }
}

TEST(Replay, KnowsWhenAValueLeavesItsLeaf) {
  for (const std::uint32_t page_size : {4096U, 8192U, 16384U, 32768U}) {
    // The largest node is half of what a page holds, less a slot; a header takes 8 bytes.
    const std::uint32_t most = (page_size - 16) / 2 - 2 - 8;
    for (const std::uint32_t key : {2U, 3U, 8U, 64U, 255U, 510U, 511U}) {
      for (std::uint32_t value = most - key - 4; value <= most - key + 4; ++value) {
        Recipe recipe = small_recipe();
        recipe.page_size = page_size;
        recipe.key_size = key;
        recipe.value_size = value;
        recipe.records = 60;
        recipe.commit_every = 7;
        recipe.append = value % 3 == 0;
        ASSERT_TRUE(is_replayed(recipe));
      }
    }
  }
}

TEST(Replay, FollowsDeepTreesThroughManyCommits) {
  for (const std::uint64_t interval : {1U, 2U, 13U, 400U}) {
    for (const bool append : {false, true}) {
      Recipe recipe = small_recipe();
      recipe.records = 4000;
      recipe.key_size = 511;
      recipe.value_size = 1500;
      recipe.commit_every = interval;
      recipe.append = append;
      if (interval == 2) recipe.name = "deep";
      ASSERT_TRUE(is_replayed(recipe));
      Replay replay(recipe);
      LeafLayout leaf;
      while (replay.next(leaf)) {
      }
      EXPECT_GE(replay.totals().data.depth, 5);
    }
  }
}

TEST(Replay, FollowsANamedDatabaseHoweverItWasCreated) {
  for (const bool apart : {false, true}) {
    for (const std::uint64_t interval : {0U, 1U, 2U, 3U, 50U}) {
      Recipe recipe = small_recipe();
      recipe.name = "train";
      recipe.created_apart = apart;
      recipe.commit_every = interval;
      ASSERT_TRUE(is_replayed(recipe));
      recipe.value_size = 3000;
      ASSERT_TRUE(is_replayed(recipe));
    }
  }
}

TEST(Replay, StartsWithOneRecord) {
  for (const std::uint32_t value : {1U, 2030U, 70'000U}) {
    Recipe recipe = small_recipe();
    recipe.records = 1;
    recipe.value_size = value;
    ASSERT_TRUE(is_replayed(recipe));
    recipe.name = "alone";
    recipe.created_apart = true;
    ASSERT_TRUE(is_replayed(recipe));
  }
}

TEST(Replay, LeavesAndChildrenReachTheMaximaOfTheRecipe) {
  Recipe recipe = small_recipe();
  recipe.append = true;
  recipe.records = 200'000;
  Replay replay(recipe);
  LeafLayout leaf;
  ASSERT_TRUE(replay.next(leaf));
  EXPECT_EQ(leaf.records, max_records_per_leaf(recipe));
  recipe.append = false;
  Replay plain(recipe);
  ASSERT_TRUE(plain.next(leaf));
  EXPECT_EQ(leaf.records, max_records_per_leaf(recipe) - 1);
  // The root takes one leaf more than children fit, and splits.
  const std::uint64_t leaves = max_children_per_branch(recipe);
  recipe.append = true;
  for (const std::uint64_t more : {0U, 1U}) {
    recipe.records = (leaves + more) * max_records_per_leaf(recipe);
    Replay full(recipe);
    while (full.next(leaf)) {
    }
    EXPECT_EQ(full.totals().data.depth, 2 + more);
  }
}

// A checkpoint after every leaf goes on as if nothing had happened.
TEST(Replay, GoesOnFromAnyCheckpoint) {
  test::RecipeDice dice(7);
  for (int i = 0; i < test::long_cases(20); ++i) {
    const Recipe recipe = dice.recipe(64 << 20, 3000, 300);
    UniformLayout layout;
    LeafLayout leaf;
    Replay whole(recipe);
    while (whole.next(leaf)) layout.add(leaf);
    ASSERT_TRUE(layout.uniform());
    ASSERT_EQ(layout.records(), recipe.records);

    Replay walking(recipe);
    const std::uint64_t step = 1 + layout.leaves() / 20;
    for (std::size_t index = 0; index <= layout.leaves(); ++index) {
      if (index % step == 0 || index + 2 > layout.leaves()) {
        const auto bytes = walking.checkpoint();
        // Behind the last leaf it holds that leaf.
        EXPECT_LE(bytes.size(), index < layout.leaves() ? 1000 : kMaxCheckpointBytes);
        const Replay resumed(recipe, bytes);
        ASSERT_EQ(resumed.position(), walking.position());
        ASSERT_EQ(resumed.checkpoint(), bytes);
        ASSERT_TRUE(test::agrees(resumed, layout, whole.totals(), index)) << test::describe(recipe);
      }
      walking.next(leaf);
    }
  }
}

TEST(Replay, ForgedCheckpointsEndInAnErrorOrInSomeLeaves) {
  Recipe recipe = small_recipe();
  recipe.value_size = 3000;
  recipe.name = "forged";
  Replay replay(recipe);
  LeafLayout leaf;
  for (int i = 0; i < 5; ++i) replay.next(leaf);
  const auto good = replay.checkpoint();
  test::RecipeDice dice(3);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = good;
    for (auto flips = dice.between(1, 4); flips > 0; --flips) {
      bytes[dice.between(0, bytes.size() - 1)] = static_cast<std::byte>(dice.between(0, 255));
    }
    if (dice.one_in(5)) bytes.resize(dice.between(0, bytes.size()));
    try {
      Replay forged(recipe, bytes);
      std::uint64_t leaves = 0;
      while (forged.next(leaf)) ASSERT_LT(++leaves, recipe.records);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::corrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_THROW(Replay(recipe, {}), Error);
}

TEST(Replay, ChangesOnlyCommitsThatAreStillToCome) {
  const Recipe recipe = small_recipe();  // commits after 70 records, two leaves
  Recipe other = recipe;
  other.commit_every = 50;
  Replay replay(recipe);
  LeafLayout leaf;
  replay.next(leaf);
  ASSERT_LT(replay.records_put(), 50U);
  Replay changed = replay;
  changed.set_commits(0, 50);
  Replay direct(other);
  direct.next(leaf);
  EXPECT_EQ(changed.checkpoint(), direct.checkpoint());
  EXPECT_THROW(changed.set_commits(0, replay.records_put()), Error);
  EXPECT_THROW(changed.set_commits(replay.records_put(), 0), Error);
  while (replay.records_put() < 80) replay.next(leaf);
  EXPECT_THROW(replay.set_commits(0, 500), Error);
  EXPECT_THROW(replay.set_commits(71, 70), Error);
  replay.set_commits(70, 500);
  other.first_commit = 70;
  other.commit_every = 500;
  Replay later(other);
  while (later.position() < replay.position()) later.next(leaf);
  EXPECT_EQ(replay.checkpoint(), later.checkpoint());
}

TEST(Replay, HasTotalsOnlyAtItsEnd) {
  Replay replay(small_recipe());
  EXPECT_THROW(replay.totals(), Error);
  LeafLayout leaf;
  while (replay.next(leaf)) {
  }
  EXPECT_EQ(replay.totals().data.entries, 3000U);
  EXPECT_EQ(replay.position(), 3000U);
  EXPECT_FALSE(replay.next(leaf));
}

}  // namespace
}  // namespace forebay::lmdb
