// A replay beside the database that liblmdb made.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "format/lmdb/provenance/infer.hpp"
#include "format/lmdb/provenance/survey.hpp"
#include "tests/format/lmdb/provenance/recipe_database.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

inline std::string describe(const lmdb::Recipe& recipe) {
  std::ostringstream text;
  text << recipe.records << " x " << recipe.key_size << " + " << recipe.value_size
       << " bytes, pages of " << recipe.page_size << ", commit every " << recipe.commit_every
       << " after " << recipe.first_commit << (recipe.append ? ", appended" : "")
       << (recipe.created_apart ? ", apart" : "") << (recipe.name.empty() ? "" : ", named");
  return text.str();
}

/// Builds `recipe` below `directory` with liblmdb and opens it with our reader.
inline lmdb::Database build_and_open(const lmdb::Recipe& recipe, const std::string& directory) {
  RecipeDatabase(recipe, directory).build();
  const std::string path = recipe.name.empty() ? directory : directory + "#" + recipe.name;
  return lmdb::Database::open(path, Engine::mmap);
}

/// Every leaf and run of `replay` from its position on, and the totals.
inline testing::AssertionResult agrees(lmdb::Replay replay, const lmdb::UniformLayout& layout,
                                       const lmdb::ReplayTotals& totals, std::size_t leaf = 0) {
  lmdb::LeafLayout next;
  for (; replay.next(next); ++leaf) {
    if (leaf == layout.leaves()) return testing::AssertionFailure() << "more leaves than " << leaf;
    if (!layout.equals(leaf, next)) {
      return testing::AssertionFailure()
             << "leaf " << leaf << " is not at page " << next.page << " with " << next.records;
    }
  }
  if (leaf != layout.leaves()) return testing::AssertionFailure() << "fewer leaves: " << leaf;
  if (replay.totals() == totals) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "other totals: last page " << replay.totals().last_page << " for " << totals.last_page;
}

inline std::optional<lmdb::Recipe> infer_recipe(lmdb::Database& database,
                                                const lmdb::RecipeHints& hints = {}) {
  return lmdb::infer_recipe(lmdb::recipe_facts(database), lmdb::survey_layout(database).layout,
                            hints);
}

inline testing::AssertionResult agrees(const lmdb::Recipe& recipe, lmdb::Database& database) {
  return agrees(lmdb::Replay(recipe), lmdb::survey_layout(database).layout,
                lmdb::recipe_facts(database).totals);
}

}  // namespace forebay::test
