// Finding the recipe of a database that exists already.
//
// The sizes, the number of records and the page size are known. What is not are the options, and
// the commit interval K. The transaction id leaves few K open, and the layout tells where the first
// commit was: a replay that never commits agrees with it exactly up to the leaf that was on the
// right edge then, since the next put moved that leaf. So the candidates are the records of one
// leaf, each tried from there on and dropped at its first wrong leaf.
//
// A recipe is returned only after its replay has been compared with every leaf, every run and the
// meta page. A reader that was open during the build moves pages without any other trace, so no
// shorter check would do.
#pragma once

#include <functional>
#include <optional>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_layout.hpp"
#include "format/lmdb/provenance/recipe.hpp"
#include "format/lmdb/provenance/replay.hpp"

namespace forebay::lmdb {

/// What the writer of a database knows. A hint is tried first, and not believed.
struct RecipeHints {
  std::optional<std::uint64_t> commit_every;  ///< 0: once
  std::optional<bool> append;
};

/// Where the leaves of a tree are, as long as all records have runs of one length or all have none:
/// no other tree has a recipe. 8 bytes a record with a run, 12 a leaf.
class UniformLayout {
 public:
  /// Leaves in key order.
  void add(const LeafLayout& leaf);

  /// False once something was added that no recipe gives.
  bool uniform() const { return uniform_; }
  std::uint64_t records() const { return records_; }
  std::size_t leaves() const { return leaf_pages_.size(); }
  /// Number of the first record of leaf `index` < leaves().
  bool equals(std::size_t index, std::uint64_t first_record, const LeafLayout& leaf) const;

 private:
  bool uniform_ = true;
  std::uint32_t run_pages_ = 0;
  std::uint64_t records_ = 0;
  std::vector<PageNumber> leaf_pages_;
  std::vector<std::uint32_t> leaf_records_;
  std::vector<PageNumber> run_pages_first_;
};

/// Everything about a database but its leaves.
struct DatabaseFacts {
  std::uint32_t page_size = 0;
  std::uint32_t key_size = 0;    ///< of the first record
  std::uint32_t value_size = 0;  ///< of the first record
  ReplayTotals totals;
  std::string name;
};

/// Reads the first leaf. Throws as Tree.
DatabaseFacts facts_of(Database& database);

/// All leaves by one walk over the tree. Throws as Tree.
UniformLayout walk_layout(Database& database);

/// A recipe whose replay is `layout` and `facts` exactly, or nothing: the database was built in
/// another way, or finding out would take more than kInferEffort times its records (plus a
/// constant) of replay.
std::optional<Recipe> infer_recipe(const DatabaseFacts& facts, const UniformLayout& layout,
                                   const RecipeHints& hints = {});
/// The same, after walk_layout().
std::optional<Recipe> infer_recipe(Database& database, const RecipeHints& hints = {});

inline constexpr std::uint64_t kInferEffort = 16;

}  // namespace forebay::lmdb
