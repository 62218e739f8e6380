// A recipe from a file is either one that a database can have, or refused.
#include "format/lmdb/provenance/recipe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/format/lmdb/provenance/recipe_database.hpp"

namespace forebay::lmdb {
namespace {

using testing::HasSubstr;

Recipe valid_recipe() {
  Recipe recipe;
  recipe.records = 50'000;
  recipe.page_size = 4096;
  recipe.key_size = 8;
  recipe.value_size = 3100;
  recipe.commit_every = 1000;
  return recipe;
}

TEST(Recipe, SurvivesAsBytes) {
  test::RecipeDice dice(1);
  for (int i = 0; i < 1000; ++i) {
    Recipe recipe = dice.recipe(64 << 20, 1'000'000, 1'000'000);
    if (i % 10 == 0) recipe.name = std::string(kMaxKeySize, '\xFF');
    const auto bytes = to_bytes(recipe);
    ASSERT_LE(bytes.size(), kMaxRecipeBytes);
    ASSERT_EQ(recipe_from_bytes(bytes), recipe);
  }
}

TEST(Recipe, BytesThatAreCutOrGoOnAreRefused) {
  Recipe recipe = valid_recipe();
  recipe.name = "train";
  auto bytes = to_bytes(recipe);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(recipe_from_bytes(std::span(bytes).first(size)), Error) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(recipe_from_bytes(bytes), Error);
}

TEST(Recipe, NumbersOfMoreThan64BitsAreRefused) {
  const std::vector<std::byte> bytes(40, std::byte{0xFF});
  EXPECT_THROW(recipe_from_bytes(bytes), Error);
}

TEST(Recipe, FieldsThatNoDatabaseHasAreNamed) {
  const auto fault = [](auto change) {
    Recipe recipe = valid_recipe();
    change(recipe);
    EXPECT_THROW(validate(recipe), Error);
    return impossible(recipe);
  };
  EXPECT_EQ(impossible(valid_recipe()), "");
  EXPECT_THAT(fault([](Recipe& r) { r.records = 0; }), HasSubstr("records"));
  EXPECT_THAT(fault([](Recipe& r) { r.records = ~std::uint64_t{0}; }), HasSubstr("records"));
  EXPECT_THAT(fault([](Recipe& r) { r.page_size = 0; }), HasSubstr("pages of 0"));
  EXPECT_THAT(fault([](Recipe& r) { r.page_size = 2048; }), HasSubstr("pages of 2048"));
  EXPECT_THAT(fault([](Recipe& r) { r.page_size = 65536; }), HasSubstr("pages of 65536"));
  EXPECT_THAT(fault([](Recipe& r) { r.page_size = 5000; }), HasSubstr("pages of 5000"));
  EXPECT_THAT(fault([](Recipe& r) { r.key_size = 0; }), HasSubstr("key size"));
  EXPECT_THAT(fault([](Recipe& r) { r.key_size = 512; }), HasSubstr("key size"));
  EXPECT_THAT(fault([](Recipe& r) { r.commit_every = ~std::uint64_t{0}; }), HasSubstr("commit"));
  EXPECT_THAT(fault([](Recipe& r) { r.first_commit = ~std::uint64_t{0}; }), HasSubstr("first"));
  EXPECT_THAT(fault([](Recipe& r) { r.name = std::string(512, 'n'); }), HasSubstr("name"));
  EXPECT_THAT(fault([](Recipe& r) {
                r.value_size = 0xFFFFFFFF;
                r.records = std::uint64_t{1} << 30;
              }),
              HasSubstr("records"));
}

TEST(Recipe, FootprintsAreEvenAndRunsWholePages) {
  EXPECT_EQ(footprint(8, 100, 4096), (Footprint{118, 18, 0}));
  EXPECT_EQ(footprint(8, 99, 4096), footprint(8, 100, 4096));
  EXPECT_EQ(footprint(7, 101, 4096), footprint(8, 100, 4096));
  EXPECT_EQ(footprint(8, 2022, 4096).run_pages, 0U);
  EXPECT_EQ(footprint(8, 2023, 4096), (Footprint{26, 18, 1}));
  EXPECT_EQ(footprint(8, 4080, 4096).run_pages, 1U);
  EXPECT_EQ(footprint(8, 4081, 4096).run_pages, 2U);
}

}  // namespace
}  // namespace forebay::lmdb
