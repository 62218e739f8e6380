// Finding the recipe of a database that exists already.
//
// The sizes, the number of records and the page size are known. What is not are the options and
// where the commits were. The layout tells that: a replay that never commits agrees with it exactly
// up to the leaf that was on the right edge at the first commit, since the next put moved that
// leaf. So the candidates are the records of one leaf, each tried from there on and dropped at its
// first wrong leaf; and the transaction id leaves few of them, as all intervals but perhaps the
// first are equal. Where no interval explains the layout from the start, the second commit is found
// in the same way as the first.
//
// A recipe is returned only after its replay has been compared with every leaf, every run and the
// meta page. A reader that was open during the build moves pages without any other trace, so no
// shorter check would do.
#pragma once

#include <optional>
#include <string>

#include "format/lmdb/database.hpp"
#include "format/lmdb/provenance/recipe.hpp"
#include "format/lmdb/provenance/replay.hpp"
#include "format/lmdb/provenance/survey.hpp"

namespace forebay::lmdb {

/// What the writer of a database knows. It is tried first, and believed no more than a guess.
struct RecipeHints {
  std::optional<std::uint64_t> commit_every;  ///< 0: once
  std::optional<bool> append;
};

/// Everything about a database but its leaves.
struct DatabaseFacts {
  std::string name;
  std::uint32_t page_size = 0;
  std::uint32_t key_size = 0;    ///< of the first record
  std::uint32_t value_size = 0;  ///< of the first record
  ReplayTotals totals;
};

/// Reads the first leaf. The sizes are 0 in an empty database. Throws as Tree.
DatabaseFacts recipe_facts(Database& database);

/// A recipe whose replay is `layout` and `facts` exactly. Nothing where there is none, because the
/// database was built in another way, or where finding it would take too long: each way of writing
/// (appended or not, created apart or not, and how commits lie) is given up after replaying
/// kInferEffort times the records, or a million leaves if those are more.
std::optional<Recipe> infer_recipe(const DatabaseFacts& facts, const UniformLayout& layout,
                                   const RecipeHints& hints = {});

inline constexpr std::uint64_t kInferEffort = 4;

}  // namespace forebay::lmdb
