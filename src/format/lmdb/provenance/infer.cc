#include "format/lmdb/provenance/infer.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kLeastEffort = 1'000'000;

/// Flags and pad say nothing about where pages are.
TreeHeader layout_part(TreeHeader header) {
  header.flags = 0;
  header.pad = 0;
  return header;
}

/// One attempt after the other at explaining one layout, within one budget.
class Search {
 public:
  Search(const DatabaseFacts& facts, const UniformLayout& layout)
      : facts_(facts),
        layout_(layout),
        effort_(kLeastEffort + kInferEffort * (layout.leaves() + layout.records())) {}

  /// Whether `recipe` gives exactly this layout.
  bool explains(const Recipe& recipe) { return agrees_to_the_end(Replay(recipe), 0); }

  /// The recipe that is `options` with the right commit interval.
  std::optional<Recipe> find_interval(Recipe options);

 private:
  bool agrees_to_the_end(Replay replay, std::size_t leaf);
  std::size_t count_agreeing_leaves(Replay replay);
  bool step(Replay& replay, std::size_t index, LeafLayout& leaf);

  const DatabaseFacts& facts_;
  const UniformLayout& layout_;
  std::uint64_t effort_;  ///< that is left, in leaves and runs
};

/// Replays leaf `index`; whether it is there and right.
bool Search::step(Replay& replay, std::size_t index, LeafLayout& leaf) {
  const std::uint64_t cost = 1 + leaf.runs.size();
  if (cost > effort_) return false;
  effort_ -= cost;
  return index < layout_.leaves() && replay.next(leaf) && layout_.equals(index, leaf);
}

bool Search::agrees_to_the_end(Replay replay, std::size_t index) {
  LeafLayout leaf;
  while (index < layout_.leaves()) {
    if (!step(replay, index++, leaf)) return false;
  }
  return !replay.next(leaf) && replay.totals() == facts_.totals;
}

std::size_t Search::count_agreeing_leaves(Replay replay) {
  LeafLayout leaf;
  std::size_t index = 0;
  while (step(replay, index, leaf)) ++index;
  return index;
}

/// Round numbers first: people choose them.
std::vector<std::uint64_t> numbers_by_roundness(std::uint64_t least, std::uint64_t most) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = least; number <= most; ++number) numbers.push_back(number);
  const auto zeros = [](std::uint64_t number) {
    int count = 0;
    for (; number != 0 && number % 10 == 0; number /= 10) ++count;
    return count;
  };
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](auto a, auto b) { return zeros(a) > zeros(b); });
  return numbers;
}

std::optional<Recipe> Search::find_interval(Recipe options) {
  const std::uint64_t own = options.created_apart ? 1 : 0;
  if (facts_.totals.transaction <= own) return {};
  const std::uint64_t commits = facts_.totals.transaction - own;
  options.commit_every = 0;
  if (commits == 1) return explains(options) ? std::optional(options) : std::nullopt;
  if (commits > options.records) return {};

  // Position the replay just before the leaf that the first commit moved.
  Replay replay(options);
  const std::size_t agreeing = count_agreeing_leaves(replay);
  LeafLayout leaf;
  std::size_t index = 0;
  // One leaf earlier, since a leaf is given out after the put behind it, and that may commit.
  for (; index + 1 < agreeing; ++index) replay.next(leaf);

  const std::uint64_t reach = replay.position() + 2 * (max_records_per_leaf(options) + 1);
  const std::uint64_t least =
      std::max((options.records - 1) / commits + 1, replay.records_put() + 1);
  const std::uint64_t most = std::min((options.records - 1) / (commits - 1), reach);
  for (const std::uint64_t interval : numbers_by_roundness(least, most)) {
    Replay attempt = replay;
    attempt.set_commit_every(interval);
    if (agrees_to_the_end(std::move(attempt), index)) {
      options.commit_every = interval;
      return options;
    }
  }
  return {};
}

/// Both ways, the likelier one first.
std::array<bool, 2> both(bool first) { return {first, !first}; }

Recipe base_recipe(const DatabaseFacts& facts) {
  Recipe recipe;
  recipe.records = facts.totals.data.entries;
  recipe.page_size = facts.page_size;
  recipe.key_size = facts.key_size;
  recipe.value_size = facts.value_size;
  recipe.name = facts.name;
  return recipe;
}

}  // namespace

DatabaseFacts recipe_facts(Database& database) {
  const Meta& meta = database.snapshot().meta();
  DatabaseFacts facts;
  facts.name = database.name();
  facts.page_size = database.page_size();
  facts.totals = {.last_page = meta.last_page,
                  .transaction = meta.transaction,
                  .data = layout_part(database.tree().header()),
                  .main = layout_part(meta.main_tree),
                  .free = layout_part(meta.free_tree)};
  const Cursor first = database.tree().first();
  if (!first.valid()) return facts;
  const Node node = database.tree().node(first);
  facts.key_size = static_cast<std::uint32_t>(node.key.size());
  facts.value_size = static_cast<std::uint32_t>(node.value_size);
  return facts;
}

std::optional<Recipe> infer_recipe(const DatabaseFacts& facts, const UniformLayout& layout,
                                   const RecipeHints& hints) {
  Recipe recipe = base_recipe(facts);
  recipe.commit_every = hints.commit_every.value_or(0);
  if (!impossible(recipe).empty() || layout.records() != recipe.records) return {};
  Search search(facts, layout);
  for (const bool hinted : both(true)) {
    if (hinted && !hints.commit_every) continue;
    for (const bool append : both(hints.append.value_or(false))) {
      for (const bool apart : both(false)) {
        recipe.append = append;
        recipe.created_apart = apart;
        if (!hinted) {
          if (auto found = search.find_interval(recipe)) return found;
        } else if (search.explains(recipe)) {
          return recipe;
        }
      }
    }
  }
  return {};
}

std::optional<Recipe> infer_recipe(Database& database, const RecipeHints& hints) {
  const DatabaseFacts facts = recipe_facts(database);
  return infer_recipe(facts, walk_layout(database), hints);
}

}  // namespace forebay::lmdb
