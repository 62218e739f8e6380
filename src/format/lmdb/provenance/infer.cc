#include "format/lmdb/provenance/infer.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kLeastEffort = 1'000'000;

/// Leaves that may hide the first of dense commits: each does by a chance of about one in three.
constexpr std::size_t kHiddenLeaves = 8;

/// Flags and pad say nothing about where pages are.
TreeHeader layout_part(TreeHeader header) {
  header.flags = 0;
  header.pad = 0;
  return header;
}

/// Numbers from `least` to `most`; none when they are the wrong way round.
struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = 0;

  Range within(Range other) const {
    return {std::max(least, other.least), std::min(most, other.most)};
  }
  /// What is left behind the first `count`.
  Range behind(std::uint64_t count) const {
    return {least > count ? least - count : 1, most > count ? most - count : 0};
  }
};

/// Round numbers first: people choose them.
std::vector<std::uint64_t> by_roundness(Range range) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = range.least; number <= range.most; ++number) {
    numbers.push_back(number);
  }
  const auto zeros = [](std::uint64_t number) {
    int count = 0;
    for (; number != 0 && number % 10 == 0; number /= 10) ++count;
    return count;
  };
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](auto a, auto b) { return zeros(a) > zeros(b); });
  return numbers;
}

/// Records a transaction such that `records` take `commits` > 1 of them.
Range intervals(std::uint64_t records, std::uint64_t commits) {
  return {(records - 1) / commits + 1, (records - 1) / (commits - 1)};
}

/// How the commits lie, the cheapest to find out first.
enum class Pattern : std::uint8_t {
  as_told,  ///< as a hint says
  once,
  equal,                ///< at one interval
  first_differs,        ///< at one interval but the first
  first_differs_dense,  ///< the same, where commits may hide each other
};
constexpr std::array kPatterns{Pattern::as_told, Pattern::once, Pattern::equal,
                               Pattern::first_differs, Pattern::first_differs_dense};

/// One attempt after the other at explaining one layout, within one budget.
///
/// Commits are "dense" when a leaf may see more than one while it is on the edge. Such a leaf may
/// return to where it was, since pages are reused, and so hide the first commits.
class Search {
 public:
  Search(const DatabaseFacts& facts, const UniformLayout& layout, const Recipe& recipe)
      : facts_(facts),
        layout_(layout),
        dense_{1, 2 * std::uint64_t{max_records_per_leaf(recipe)}},
        effort_(kLeastEffort + kInferEffort * (layout.leaves() + layout.records())) {}

  /// The recipe that is `options` with the right commits.
  std::optional<Recipe> find(const Recipe& options, Pattern pattern);

 private:
  /// A replay that agrees with the layout so far.
  struct Attempt {
    Replay replay;
    std::size_t leaf = 0;  ///< that comes next
  };
  /// A commit that the layout shows.
  struct Commit {
    Attempt before;  ///< a replay that has not come to it yet
    Range records;   ///< that were put before it
  };

  bool step(Attempt& attempt, LeafLayout& leaf);
  bool agrees_to_the_end(Attempt attempt);
  Commit find_next_commit(const Attempt& start, std::size_t hidden_leaves);
  std::optional<Recipe> try_intervals(const Attempt& before, std::uint64_t first, Range range);
  std::optional<Recipe> find_equal_commits(const Recipe& options, std::uint64_t commits);
  std::optional<Recipe> find_first_commit(const Recipe& options, std::uint64_t commits, bool dense);
  std::optional<Recipe> find_later_commits(const Attempt& before, std::uint64_t first,
                                           std::uint64_t commits, bool dense);
  Range sparse() const { return {dense_.most + 1, layout_.records()}; }

  const DatabaseFacts& facts_;
  const UniformLayout& layout_;
  Range dense_;           ///< intervals of dense commits
  std::uint64_t effort_;  ///< that is left, in leaves and runs
};

/// Replays one leaf; whether it is there and right.
bool Search::step(Attempt& attempt, LeafLayout& leaf) {
  const std::size_t index = attempt.leaf++;
  effort_ -= std::min<std::uint64_t>(effort_, 1 + leaf.runs.size());
  if (effort_ == 0) return false;
  return index < layout_.leaves() && attempt.replay.next(leaf) && layout_.equals(index, leaf);
}

bool Search::agrees_to_the_end(Attempt attempt) {
  LeafLayout leaf;
  while (attempt.leaf < layout_.leaves()) {
    if (!step(attempt, leaf)) return false;
  }
  return !attempt.replay.next(leaf) && attempt.replay.totals() == facts_.totals;
}

/// Where `start`, which does not commit any more, ceases to agree, or up to `hidden_leaves` before.
Search::Commit Search::find_next_commit(const Attempt& start, std::size_t hidden_leaves) {
  LeafLayout leaf;
  Attempt ahead = start;
  while (step(ahead, leaf)) {
  }
  const std::size_t moved = ahead.leaf - 1;
  Commit commit{.before = start, .records = {}};
  Attempt& before = commit.before;
  // One leaf earlier, since a leaf is given out after the put behind it, and that may commit.
  LeafLayout passed;
  for (; before.leaf + hidden_leaves + 1 < moved; ++before.leaf) before.replay.next(passed);
  const std::uint64_t leaves = moved + 1 - before.leaf;
  commit.records = {before.replay.records_put() + 1,
                    before.replay.position() + leaves * (dense_.most / 2 + 1)};
  if (!layout_.has_runs() || moved >= layout_.leaves()) return commit;
  // The leaf is moved before the next run is placed, so the first run elsewhere tells exactly.
  // Without one the next record went to the next leaf, perhaps with the one before it.
  const std::uint64_t record = layout_.first_other_run(moved, leaf);
  commit.records = commit.records.within({record, record + 1});
  return commit;
}

std::optional<Recipe> Search::try_intervals(const Attempt& before, std::uint64_t first,
                                            Range range) {
  for (const std::uint64_t interval : by_roundness(range)) {
    if (effort_ == 0) return {};
    Attempt attempt = before;
    attempt.replay.set_commits(first, interval);
    if (agrees_to_the_end(attempt)) return attempt.replay.recipe();
  }
  return {};
}

std::optional<Recipe> Search::find_equal_commits(const Recipe& options, std::uint64_t commits) {
  const Range possible = intervals(options.records, commits);
  const Attempt start{Replay(options)};
  if (auto found = try_intervals(start, 0, possible.within(dense_))) return found;
  const Commit first = find_next_commit(start, 0);
  return try_intervals(first.before, 0, possible.within(first.records).within(sparse()));
}

std::optional<Recipe> Search::find_later_commits(const Attempt& before, std::uint64_t first,
                                                 std::uint64_t commits, bool dense) {
  Attempt attempt = before;
  attempt.replay.set_commits(first, 0);
  if (commits == 1) {
    if (!agrees_to_the_end(attempt)) return {};
    return attempt.replay.recipe();
  }
  const Range possible = intervals(layout_.records() - first, commits);
  if (dense) return try_intervals(attempt, first, possible.within(dense_));
  const Commit second = find_next_commit(attempt, 0);
  return try_intervals(second.before, first,
                       possible.within(second.records.behind(first)).within(sparse()));
}

std::optional<Recipe> Search::find_first_commit(const Recipe& options, std::uint64_t commits,
                                                bool dense) {
  const Commit first = find_next_commit({Replay(options)}, dense ? kHiddenLeaves : 0);
  for (const std::uint64_t records :
       by_roundness(first.records.within({1, layout_.records() - 1}))) {
    if (effort_ == 0) return {};
    if (auto found = find_later_commits(first.before, records, commits - 1, dense)) return found;
  }
  return {};
}

std::optional<Recipe> Search::find(const Recipe& options, Pattern pattern) {
  const std::uint64_t own = options.created_apart ? 1 : 0;
  if (facts_.totals.transaction <= own) return {};
  const std::uint64_t commits = facts_.totals.transaction - own;
  if (commits > options.records) return {};
  switch (pattern) {
    case Pattern::as_told:
    case Pattern::once:
      if (!agrees_to_the_end({Replay(options)})) return {};
      return options;
    case Pattern::equal:
      if (commits > 1) return find_equal_commits(options, commits);
      break;
    case Pattern::first_differs:
      if (commits > 1) return find_first_commit(options, commits, false);
      break;
    case Pattern::first_differs_dense:
      if (commits > 2) return find_first_commit(options, commits, true);
      break;
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
  const Recipe base = base_recipe(facts);
  if (!impossible(base).empty() || layout.records() != base.records) return {};
  for (const Pattern pattern : kPatterns) {
    if (pattern == Pattern::as_told && !hints.commit_every) continue;
    for (const bool append : both(hints.append.value_or(false))) {
      for (const bool apart : both(false)) {
        Recipe recipe = base;
        recipe.append = append;
        recipe.created_apart = apart;
        if (pattern == Pattern::as_told) recipe.commit_every = *hints.commit_every;
        if (!impossible(recipe).empty()) continue;
        if (auto found = Search(facts, layout, recipe).find(recipe, pattern)) return found;
      }
    }
  }
  return {};
}

}  // namespace forebay::lmdb
