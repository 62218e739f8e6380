// A recipe is found where there is one, and never where there is none.
#include "format/lmdb/provenance/infer.hpp"

#include <gtest/gtest.h>

#include "format/lmdb/writer.hpp"
#include "tests/format/lmdb/provenance/compare_layout.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"

namespace forebay::lmdb {
namespace {

std::optional<Recipe> inferred(const test::LmdbBuilder& builder, const RecipeHints& hints = {}) {
  const test::TemporaryFolder directory;
  Database database = Database::open(builder.build(directory.path()), Engine::mmap);
  const auto recipe = test::infer_recipe(database, hints);
  if (!recipe) return {};
  EXPECT_TRUE(test::agrees(*recipe, database)) << test::describe(*recipe);
  return recipe;
}

TEST(Infer, FindsTheRecipesOfRandomDatabases) {
  test::RecipeDice dice(99);
  for (int i = 0; i < test::long_cases(50); ++i) {
    const Recipe recipe = dice.recipe(16 << 20, 20'000, 1000);
    const test::TemporaryFolder directory;
    Database database = test::build_and_open(recipe, directory.path());
    const auto found = test::infer_recipe(database);
    ASSERT_TRUE(found) << test::describe(recipe);
    ASSERT_TRUE(test::agrees(*found, database)) << test::describe(*found);
    ASSERT_EQ(footprint(*found), footprint(recipe));
  }
}

TEST(Infer, PrefersRoundIntervals) {
  // 1,000 and 1,001 lie alike here: both commit while the same leaves are on the edge.
  const auto recipe = inferred(test::LmdbBuilder().in_order(1500).values(20).commit_every(1000));
  ASSERT_TRUE(recipe);
  EXPECT_EQ(recipe->commit_every, 1000U);
}

// "if (number % 100 == 0) commit" makes a first transaction of one record.
TEST(Infer, FindsAFirstTransactionOfItsOwnSize) {
  for (const std::uint32_t value : {20U, 1500U, 3100U}) {
    for (const std::uint64_t first : {1U, 2U, 99U, 350U}) {
      Recipe recipe;
      recipe.records = 3000;
      recipe.page_size = 4096;
      recipe.key_size = 8;
      recipe.value_size = value;
      recipe.first_commit = first;
      for (const std::uint64_t interval : {0U, 10U, 100U, 2000U}) {
        recipe.commit_every = interval;
        const test::TemporaryFolder directory;
        Database database = test::build_and_open(recipe, directory.path());
        const auto found = test::infer_recipe(database);
        ASSERT_TRUE(found) << test::describe(recipe);
        ASSERT_TRUE(test::agrees(*found, database)) << test::describe(*found);
      }
    }
  }
}

TEST(Infer, TakesAHintButComparesIt) {
  auto builder = test::LmdbBuilder().in_order(5000).values(3100).commit_every(100);
  const auto found = [&](const RecipeHints& hints) {
    const auto recipe = inferred(builder, hints);
    EXPECT_TRUE(recipe);
    EXPECT_FALSE(recipe && recipe->append);
    return recipe ? recipe->commit_every : 0;
  };
  EXPECT_EQ(found({.commit_every = 100, .append = false}), 100U);
  EXPECT_EQ(found({.commit_every = 99, .append = true}), 100U);
  EXPECT_EQ(found({.commit_every = ~std::uint64_t{0}}), 100U);
  builder.commit_every(0);
  EXPECT_EQ(found({.commit_every = 100}), 0U);
  EXPECT_EQ(found({.commit_every = 7000}), 7000U);
}

TEST(Infer, FindsWhatOurWriterWrote) {
  for (const char* name : {"", "train"}) {
    for (const bool integers : {false, true}) {
      const test::TemporaryFolder directory;
      {
        // The map has to grow many times: what was aborted leaves no trace.
        Writer writer(directory.path(), {.commit_every = 150,
                                         .map_size = 1 << 20,
                                         .sync = false,
                                         .append = true,
                                         .integer_keys = integers,
                                         .name = name});
        const std::vector<std::byte> value(3100);
        for (std::uint64_t i = 0; i < 4000; ++i) {
          std::uint64_t key = i;
          if (!integers) key = __builtin_bswap64(i);
          writer.put(std::as_bytes(std::span(&key, 1)), value);
        }
        writer.commit();
      }
      const std::string path = directory.path() + (*name != '\0' ? "#train" : "");
      Database database = Database::open(path, Engine::mmap);
      const auto recipe = test::infer_recipe(database, {.commit_every = 150, .append = true});
      ASSERT_TRUE(recipe) << path << integers;
      EXPECT_TRUE(test::agrees(*recipe, database));
      EXPECT_TRUE(recipe->append);
      EXPECT_EQ(recipe->commit_every, 150U);
      EXPECT_EQ(recipe->created_apart, integers || *name != '\0');
    }
  }
}

TEST(Infer, AcceptsLengthsOfOneFootprint) {
  EXPECT_TRUE(inferred(test::LmdbBuilder().in_order(5000).values(2100, 4080).commit_every(100)));
  EXPECT_TRUE(inferred(test::LmdbBuilder().in_order(5000).value_sizes({99, 100}).commit_every(9)));
  // As Caffe's converters write them: file names as keys, labels of one or two bytes.
  const auto caffe = test::LmdbBuilder().in_order(900).value_sizes({3081, 3082}).commit_every(100);
  EXPECT_TRUE(inferred(caffe));
}

TEST(Infer, FindsNoneForOtherLayouts) {
  const auto base = test::LmdbBuilder().in_order(5000).values(3100).commit_every(50);
  const auto with = [&](auto change) {
    test::LmdbBuilder builder = base;
    change(builder);
    return inferred(builder);
  };
  EXPECT_TRUE(inferred(base));
  EXPECT_FALSE(with([](auto& b) { b.held_reader(); })) << "a reader held pages back";
  EXPECT_FALSE(with([](auto& b) { b.random_order(5000); }));
  EXPECT_FALSE(with([](auto& b) { b.reverse_order(5000); }));
  EXPECT_FALSE(with([](auto& b) { b.delete_every(70); }));
  EXPECT_FALSE(with([](auto& b) { b.delete_every(70).refill(); }));
  EXPECT_FALSE(with([](auto& b) { b.update_every(70); }));
  EXPECT_FALSE(with([](auto& b) { b.values(1000, 3100); }));
  EXPECT_FALSE(with([](auto& b) { b.values(3100, 9100); }));
  EXPECT_FALSE(with([](auto& b) { b.file_name_keys(); }));
  EXPECT_FALSE(with([](auto& b) { b.compacted(); }));
  EXPECT_FALSE(with([](auto& b) { b.named("one").beside({"other"}); }));
}

// Every database of the zoo is either replayed exactly or left alone.
TEST(Infer, IsRightAboutEveryStandardDatabase) {
  int found = 0;
  for (const auto& [name, builder] : test::standard_databases()) {
    SCOPED_TRACE(name);
    found += inferred(builder).has_value() ? 1 : 0;
  }
  EXPECT_GT(found, 3);
}

TEST(Infer, FindsNoneForAnEmptyDatabase) {
  EXPECT_FALSE(inferred(test::LmdbBuilder().in_order(0)));
}

}  // namespace
}  // namespace forebay::lmdb
