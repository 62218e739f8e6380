#include "format/convention/key_look.hpp"

#include <array>
#include <functional>

#include "forebay/error.hpp"
#include "format/convention/layout.hpp"

namespace forebay::convention {
namespace {

using Why = MetadataRecord::Why;

// A sample with more parts than this is none that anybody has made.
constexpr std::size_t kMostGroups = 16;
// Counts have fewer bytes in every form that is known.
constexpr std::uint64_t kMostCounterBytes = 32;

/// What else programs keep beside samples: beside numbers, however few these are.
constexpr std::array<std::string_view, 8> kKeptBeside = {
    "deleted_ids", "id_to_idx", "info",   "keys",
    "meta",        "metadata",  "nextid", "serialization_format"};

/// The last record before `end`, the first whose key is not less than all of some prefix.
lmdb::Cursor before(lmdb::Tree& tree, lmdb::Cursor end) {
  if (!end.valid()) return tree.last();
  tree.previous(end);
  return end;
}

}  // namespace

bool Look::is_metadata(std::string_view key) const {
  if (!look_.bytes_order) {
    return std::ranges::find(look_.metadata, key, &MetadataRecord::key) != look_.metadata.end();
  }
  const auto at = std::ranges::lower_bound(look_.metadata, key, {}, &MetadataRecord::key);
  return at != look_.metadata.end() && at->key == key;
}

std::vector<std::uint64_t> Look::counts_at(const lmdb::Cursor& cursor) {
  const lmdb::Node node = tree_.node(cursor);
  if (node.is_tree() || node.value_size > kMostCounterBytes) return {};
  return possible_counts(tree_.entry(cursor).value);
}

/// In key order.
void Look::add(Why why, const lmdb::Cursor& cursor, std::vector<std::uint64_t> counts) {
  const lmdb::Node node = tree_.node(cursor);
  MetadataRecord record{.why = node.is_tree() ? Why::database : why,
                        .key = std::string(chars_of(node.key)),
                        .counts = std::move(counts),
                        .value_bytes = node.value_size,
                        .record = 0};
  auto at = look_.metadata.end();
  if (look_.bytes_order) {
    at = std::ranges::lower_bound(look_.metadata, record.key, {}, &MetadataRecord::key);
  }
  look_.metadata.insert(at, std::move(record));
}

std::optional<lmdb::Cursor> Look::find(std::string_view key) {
  if (key < look_.first_key || key > look_.last_key || is_metadata(key)) return std::nullopt;
  if (key >= gap_from_ && key < gap_to_) return std::nullopt;
  const lmdb::Cursor cursor = tree_.seek(bytes_of(key));
  if (!cursor.valid()) return std::nullopt;
  std::string found = key_at(tree_, cursor);
  if (found == key) return cursor;
  gap_from_ = key;
  gap_to_ = std::move(found);
  return std::nullopt;
}

/// For named databases, and for what the user leaves out.
void Look::walk() {
  lmdb::Cursor cursor = tree_.first();
  for (bool more = cursor.valid(); more; more = tree_.next(cursor)) {
    const lmdb::Node node = tree_.node(cursor);
    bool leaves = node.is_tree();
    for (std::size_t i = 0; i < leave_out_.all().size(); ++i) {
      if (!leave_out_.matches(i, chars_of(node.key))) continue;
      leaves = look_.used[i] = true;
    }
    if (leaves) add(Why::asked, cursor);
  }
}

void Look::look_up_asked() {
  for (std::size_t i = 0; i < leave_out_.all().size(); ++i) {
    const std::string& key = leave_out_.all()[i];
    if (const auto cursor = find(key)) add(Why::asked, *cursor);
    look_.used[i] = is_metadata(key);
  }
}

const Named* Look::named(std::string_view key) const {
  const auto at = std::ranges::find(named_, key, &Named::key);
  return at == named_.end() ? nullptr : &*at;
}

/// Where there are many, or nothing else but counters, keys are just made so.
void Look::find_reserved() {
  std::vector<lmdb::Cursor> found;
  constexpr std::string_view kBegin = "__";
  const bool behind = look_.first_key > kBegin && !look_.first_key.starts_with(kBegin);
  if (behind || look_.last_key < kBegin) return;
  for (lmdb::Cursor cursor = tree_.seek(bytes_of(kBegin)); cursor.valid(); tree_.next(cursor)) {
    const std::string key = key_at(tree_, cursor);
    if (!key.starts_with(kBegin)) break;
    if (found.size() == kMostUnlike) return;
    if (is_reserved_key(key) && !is_metadata(key) && !keep_.match(key)) found.push_back(cursor);
  }
  const bool all = found.size() == left();
  for (const lmdb::Cursor& cursor : found) {
    const bool counts = is_counter_key(key_at(tree_, cursor));
    if (all && !counts) continue;
    add(Why::known, cursor, counts ? counts_at(cursor) : std::vector<std::uint64_t>());
  }
}

/// Whether these may be counts of samples: few bytes, and what is called "size", may be anything.
bool Look::is_near(const std::vector<std::uint64_t>& counts) const {
  constexpr std::uint64_t kMostOff = 16;
  return std::ranges::any_of(counts, [this](std::uint64_t count) {
    return count >= left() / kMostOff && count / kMostOff <= left();
  });
}

void Look::find_named() {
  const auto look_for = [this](std::string_view key, bool counter) {
    if (keep_.match(key)) return;
    const auto at = find(key);
    if (!at) return;
    auto counts = counts_at(*at);
    if (!is_sure_counter(key) && key != "length" && !is_near(counts)) counts.clear();
    named_.push_back({std::string(key), *at, counter, std::move(counts)});
  };
  for (const std::string_view key : counter_keys()) look_for(key, true);
  for (const std::string_view key : kKeptBeside) look_for(key, false);
}

/// As many counters as say that the others are the samples, all but them.
void Look::take_true_counters() {
  for (std::uint64_t count = std::min<std::uint64_t>(named_.size(), left()); count > 0; --count) {
    const auto is_right = [&](const Named& one) {
      return one.counter && contains(one.counts, left() - count);
    };
    if (static_cast<std::uint64_t>(std::ranges::count_if(named_, is_right)) != count) continue;
    const auto right = std::stable_partition(named_.begin(), named_.end(), std::not_fn(is_right));
    for (auto one = right; one != named_.end(); ++one) add(Why::known, one->at, one->counts);
    named_.erase(right, named_.end());
    return;
  }
}

/// Moves on to behind the keys that share the prefix of `first`, which all are numbered then.
bool Look::group_at(lmdb::Cursor& cursor, const NumberedKey& first) {
  if (look_.groups.size() == kMostGroups) return false;
  const std::string prefix(first.prefix);
  cursor = tree_.seek(bytes_of(prefix + ':'));  // ':' comes behind '9'
  const lmdb::Cursor end = before(tree_, cursor);
  if (!end.valid()) return false;
  const std::string last_key = key_at(tree_, end);
  const auto last = numbered_key(last_key);
  if (!last || last->prefix != prefix) return false;
  look_.groups.push_back({prefix, std::string(first.digits), std::string(last->digits)});
  return true;
}

void Look::find_groups() {
  lmdb::Cursor cursor = tree_.first();
  while (cursor.valid()) {
    const std::string key = key_at(tree_, cursor);
    if (is_metadata(key)) {
      tree_.next(cursor);
    } else if (const auto first = numbered_key(key)) {
      if (group_at(cursor, *first)) continue;
      look_.groups.clear();
      return;
    } else if (odd_.size() < kMostUnlike && !keep_.match(key) && choice_.guess) {
      odd_.push_back(key);
      tree_.next(cursor);
    } else {
      look_.groups.clear();
      return;
    }
  }
}

/// What is beside the parts of samples is none of them.
void Look::take_odd() {
  const std::uint64_t samples = (left() - odd_.size()) / look_.groups.size();
  for (const std::string& key : odd_) {
    const auto cursor = find(key);
    if (!cursor) continue;
    const Named* counter = named(key);
    if (counter == nullptr || !counter->counter) {
      add(Why::unlike, *cursor);
    } else {
      add(contains(counter->counts, samples) ? Why::known : Why::unlike, *cursor, counter->counts);
    }
  }
}

/// Records beside the parts of samples do not undo these.
void Look::take_beside_groups() {
  const KeyLook before = look_;
  const bool numbered = odd_.empty();
  const auto is_lone = [](const KeyGroup& group) { return group.first == group.last; };
  if (std::ranges::count_if(look_.groups, is_lone) + 2 <= std::ssize(look_.groups)) {
    std::erase_if(look_.groups, [&](const KeyGroup& group) {
      const std::string key = group.prefix + group.first;
      const bool beside = choice_.guess && is_lone(group) && !is_usual_part(group.prefix) &&
                          odd_.size() < kMostUnlike && !keep_.match(key);
      if (beside) odd_.push_back(key);
      return beside;
    });
  }
  if (look_.groups.size() < 2 || left() < 2 * odd_.size()) {
    look_ = before;
    if (!numbered) look_.groups.clear();
    return;
  }
  take_odd();
  if (choice_.guess && !choice_.grouped) look_.guess = guess_of_groups(look_);
  if (looks_grouped(look_, choice_.grouped)) {
    if (!odd_.empty()) look_.form = "parts of samples";
    return;
  }
  const std::string guess = look_.guess;
  look_ = before;
  look_.guess = guess;
  if (!numbered) look_.groups.clear();
}

KeyLook Look::run() {
  look_.entries = database_.entries();
  constexpr unsigned kOtherOrders = lmdb::kTreeReverseKey | lmdb::kTreeIntegerKey;
  look_.bytes_order = (tree_.header().flags & kOtherOrders) == 0;
  look_.used.resize(leave_out_.all().size());
  if (look_.entries == 0) return look_;
  look_.first_key = key_at(tree_, tree_.first());
  look_.last_key = key_at(tree_, tree_.last());
  const bool patterns = std::ranges::any_of(leave_out_.all(), KeyPatterns::is_pattern);
  const bool all_keys = patterns || (!look_.bytes_order && !leave_out_.empty());
  if (all_keys || database_.may_hold_databases()) {
    walk();
  } else {
    look_up_asked();
  }
  if (!look_.bytes_order || left() == 0) return look_;
  if (choice_.guess) {
    find_reserved();
    find_named();
    take_true_counters();
  }
  find_groups();
  take_beside_groups();
  if (!choice_.guess || left() < 2 || looks_grouped(look_, choice_.grouped)) return look_;
  find_unlike();
  if (look_.guess.empty()) tell_suffixes();
  return look_;
}

KeyLook look_at_keys(lmdb::Database& database, const KeyChoice& choice) {
  return Look(database, choice).run();
}

void for_each_key(lmdb::Database& database,
                  const std::function<bool(std::uint64_t, std::string_view)>& use) {
  lmdb::Tree& tree = database.tree();
  lmdb::Cursor cursor = tree.first();
  std::uint64_t record = 0;
  for (bool more = cursor.valid(); more; more = tree.next(cursor)) {
    if (!use(record++, chars_of(tree.node(cursor).key))) return;
  }
}

void number_metadata(lmdb::Database& database, std::vector<MetadataRecord>& metadata) {
  lmdb::Tree& tree = database.tree();
  const auto is_at = [&](const lmdb::Cursor& cursor, const MetadataRecord& one) {
    return cursor.valid() && key_at(tree, cursor) == one.key;
  };
  std::size_t begin = 0;
  std::size_t end = metadata.size();
  for (lmdb::Cursor cursor = tree.first(); begin < end && is_at(cursor, metadata[begin]);
       tree.next(cursor)) {
    metadata[begin].record = begin;
    ++begin;
  }
  std::uint64_t record = database.entries();
  for (lmdb::Cursor cursor = tree.last(); end > begin && is_at(cursor, metadata[end - 1]);
       tree.previous(cursor)) {
    metadata[--end].record = --record;
  }
  if (begin == end) return;
  for_each_key(database, [&](std::uint64_t number, std::string_view key) {
    if (key == metadata[begin].key) metadata[begin++].record = number;
    return begin < end;
  });
}

}  // namespace forebay::convention
