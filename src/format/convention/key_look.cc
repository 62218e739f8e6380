// Which records are no samples, and whether the others are parts of samples: by look-ups from the
// root, however many records there are.
//
//   asked       KeyChoice::leave_out: looked up; patterns cost a walk over all keys
//   databases   by the flag of their nodes. A walk finds them; it is spared where the pages of the
//               tree and the free list are all that there are, as others have pages as well
//   known       reserved keys, and those of counter_keys() that count right
//   unlike      a few at the ends, or with well-known keys, beside keys that share a form; or
//   beside
//               parts of samples
//   wrong       counters beside keys without a form: left for check_counters(), which refuses them
//
// Keys of one form mostly lie together in the tree, so what is unlike them lies at its ends.
// Between the ends, keys are looked at where they are likely to lie, and at some places in equal
// steps: one that is unlike the others there means that keys have no form.
#include <algorithm>
#include <array>

#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"
#include "format/convention/layout.hpp"

namespace forebay::convention {
namespace {

using Why = MetadataRecord::Why;

// A sample with more parts than this is none that anybody has made.
constexpr std::size_t kMostGroups = 16;
// Counts have fewer bytes in every form that is known.
constexpr std::uint64_t kMostCounterBytes = 32;
// More records are not kept beside samples.
constexpr std::size_t kMostUnlike = 8;
// As many alike for one that is not say that it is none of them.
constexpr std::uint64_t kAlikeForOne = 10;
constexpr std::uint64_t kNumbersForOne = 3;  // where keys are nothing but numbers
constexpr int kKeysAtAPlace = 16;
// Between the first key and the last one; all keys of a database that has no more than so many.
constexpr std::uint64_t kPlaces = 8;
constexpr std::uint64_t kFewKeys = 256;
// Records on either side, whose values show what those of samples are.
constexpr int kNeighbours = 3;
// Few bytes may be anything: taken for a count only where they are off by no more than this.
constexpr std::uint64_t kMostOff = 16;

/// What else programs keep beside samples: beside numbers, however few these are.
constexpr std::array<std::string_view, 8> kKeptBeside = {
    "deleted_ids", "id_to_idx", "info",   "keys",
    "meta",        "metadata",  "nextid", "serialization_format"};

std::string key_at(lmdb::Tree& tree, const lmdb::Cursor& cursor) {
  return std::string(chars_of(tree.node(cursor).key));
}

/// The last record before `end`, the first whose key is not less than all of some prefix.
lmdb::Cursor before(lmdb::Tree& tree, lmdb::Cursor end) {
  if (!end.valid()) return tree.last();
  tree.previous(end);
  return end;
}

bool contains(const std::vector<std::uint64_t>& counts, std::uint64_t count) {
  return std::ranges::find(counts, count) != counts.end();
}

/// A name that nothing but a counter has: no word that a sample may be called.
bool is_sure_counter(std::string_view key) {
  return !std::ranges::all_of(key, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// A record with a well-known key, until it is known what it is.
struct Named {
  std::string key;
  bool counter = false;
  std::vector<std::uint64_t> counts;
};

/// Keys that stand out beside those of a form.
struct StandOut {
  KeyForm form;
  std::vector<std::string> keys;
  std::string first;  ///< of the form
  std::string last;

  bool operator<(const StandOut& other) const {
    if (keys.size() != other.keys.size()) return keys.size() < other.keys.size();
    return form.is_narrower_than(other.form);
  }
};

class Look {
 public:
  Look(lmdb::Database& database, const KeyChoice& choice)
      : database_(database),
        tree_(database.tree()),
        choice_(choice),
        leave_out_(choice.leave_out),
        keep_(choice.keep) {}

  KeyLook run();

 private:
  std::uint64_t left() const { return look_.entries - look_.metadata.size(); }
  bool is_metadata(std::string_view key) const;
  std::vector<std::uint64_t> counts_at(const lmdb::Cursor& cursor);
  void add(Why why, const lmdb::Cursor& cursor, std::vector<std::uint64_t> counts = {});
  std::optional<lmdb::Cursor> find(std::string_view key);

  void walk();
  void look_up_asked();
  const Named* named(std::string_view key) const;
  void find_reserved();
  void find_named();
  void take_true_counters();
  void find_groups();
  bool group_at(lmdb::Cursor& cursor, const NumberedKey& first);
  void take_beside_groups();
  void take_odd();
  std::vector<std::string> end_keys(bool back);
  std::vector<std::string> keys_between();
  std::vector<StandOut> standing_out();
  bool is_whole(StandOut& found, std::span<const std::string> between);
  bool is_evident(const StandOut& found, std::span<const std::string> leaving);
  bool all_alike() const;
  bool leave_unlike(const StandOut& found);
  void find_unlike();
  bool others_count(const Named& named);
  void take_wrong_counters();

  lmdb::Database& database_;
  lmdb::Tree& tree_;
  const KeyChoice& choice_;
  KeyPatterns leave_out_;
  KeyPatterns keep_;
  KeyLook look_;
  std::vector<Named> named_;      ///< in no order
  std::vector<std::string> odd_;  ///< among groups
  std::string gap_from_;          ///< no key is from here on, up to the other, by the last find()
  std::string gap_to_;
};

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

void Look::find_named() {
  const auto look_for = [this](std::string_view key, bool counter) {
    if (keep_.match(key)) return;
    if (const auto at = find(key)) named_.push_back({std::string(key), counter, counts_at(*at)});
  };
  for (const std::string_view key : counter_keys()) look_for(key, true);
  for (const std::string_view key : kKeptBeside) look_for(key, false);
}

/// As many counters as say that the others are the samples, all but them.
void Look::take_true_counters() {
  for (std::uint64_t count = std::min<std::uint64_t>(named_.size(), left()); count > 0; --count) {
    std::vector<std::string> right;
    for (const Named& one : named_) {
      if (one.counter && contains(one.counts, left() - count)) right.push_back(one.key);
    }
    if (right.size() != count) continue;
    for (const std::string& key : right) {
      add(Why::known, *find(key), named(key)->counts);
      std::erase_if(named_, [&](const Named& one) { return one.key == key; });
    }
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

/// The first keys, or the last ones first, but metadata: one more than may be unlike the others.
std::vector<std::string> Look::end_keys(bool back) {
  std::vector<std::string> keys;
  lmdb::Cursor cursor = back ? tree_.last() : tree_.first();
  while (cursor.valid() && keys.size() <= kMostUnlike) {
    std::string key = key_at(tree_, cursor);
    if (!is_metadata(key)) keys.push_back(std::move(key));
    if (back) {
      tree_.previous(cursor);
    } else {
      tree_.next(cursor);
    }
  }
  return keys;
}

/// At some places in equal steps, and in key order.
std::vector<std::string> Look::keys_between() {
  std::vector<std::string> keys;
  if (look_.entries <= kFewKeys) {
    for_each_key(database_, [&](std::uint64_t, std::string_view key) {
      keys.emplace_back(key);
      return true;
    });
    return keys;
  }
  for (std::uint64_t place = 1; place < kPlaces; ++place) {
    lmdb::Cursor cursor = tree_.about(place, kPlaces);
    for (int i = 0; i < kKeysAtAPlace && cursor.valid(); ++i, tree_.next(cursor)) {
      keys.push_back(key_at(tree_, cursor));
    }
  }
  return keys;
}

/// By each form that keys at the ends have: the fewest first.
std::vector<StandOut> Look::standing_out() {
  const auto front = end_keys(false);
  const auto back = end_keys(true);
  std::vector<std::string> models = front;
  models.insert(models.end(), back.begin(), back.end());
  std::vector<StandOut> all;
  for (const std::string& model : models) {
    for (const KeyForm& form : KeyForm::all_of(model)) {
      if (std::ranges::find(all, form, &StandOut::form) != all.end()) continue;
      const auto has = [&](const std::string& key) { return form.has(key); };
      const auto first = std::ranges::find_if(front, has);
      const auto last = std::ranges::find_if(back, has);
      if (first == front.end() || last == back.end()) continue;
      StandOut found{.form = form, .keys = {front.begin(), first}, .first = *first, .last = *last};
      found.keys.insert(found.keys.end(), back.begin(), last);
      for (const Named& one : named_) {
        if (!has(one.key) && std::ranges::find(found.keys, one.key) == found.keys.end()) {
          found.keys.push_back(one.key);
        }
      }
      all.push_back(std::move(found));
    }
  }
  std::ranges::stable_sort(all, std::less());
  return all;
}

/// Whether all keys between the ends seem to have the form, but for a few that stand out as well:
/// of hashes, capitals and '_' lie between digits and letters; of a few keys, all are seen.
bool Look::is_whole(StandOut& found, std::span<const std::string> between) {
  const bool all_seen = look_.entries <= kFewKeys && !found.form.is_together();
  const auto fits = [&](const std::string& key) {
    if (found.form.has(key) || is_metadata(key) || key < found.first || key > found.last ||
        std::ranges::find(found.keys, key) != found.keys.end()) {
      return true;
    }
    const bool may_stand_out = all_seen || (found.form.is_hash() && key > ":" && key < "a");
    if (!may_stand_out || found.keys.size() == kMostUnlike) return false;
    found.keys.push_back(key);
    return true;
  };
  if (!std::ranges::all_of(between, fits)) return false;
  std::vector<std::string> places = found.form.places();
  places.emplace_back(":");
  for (const std::string& place : places) {
    lmdb::Cursor cursor = tree_.seek(bytes_of(std::max(place, found.first)));
    for (int i = 0; i < kKeysAtAPlace && cursor.valid(); ++i, tree_.next(cursor)) {
      if (!fits(key_at(tree_, cursor))) return false;
    }
  }
  return found.keys.size() <= kMostUnlike;
}

/// Counters decide, else what keys are called, else how many are alike.
bool Look::is_evident(const StandOut& found, std::span<const std::string> leaving) {
  const std::uint64_t samples = left() - leaving.size();
  for (const MetadataRecord& record : look_.metadata) {
    if (contains(record.counts, samples)) return true;
    if (contains(record.counts, left())) return false;
  }
  const bool numbers = found.form.is_plain_number();
  bool all_known = true;
  for (const std::string& key : leaving) {
    if (contains(counts_at(*find(key)), samples)) return true;
    const Named* known = named(key);
    all_known = all_known && known != nullptr && (known->counter || numbers);
  }
  if (all_known && found.form.is_narrow()) return true;
  return samples >= (numbers ? kNumbersForOne : kAlikeForOne) * leaving.size();
}

/// As both ends say it.
bool Look::all_alike() const {
  if (is_metadata(look_.first_key) || is_metadata(look_.last_key)) return false;
  const auto has_last = [this](const KeyForm& form) {
    return form.is_together() && form.has(look_.last_key);
  };
  return std::ranges::any_of(KeyForm::all_of(look_.first_key), has_last);
}

/// What stands out, where that is evident.
bool Look::leave_unlike(const StandOut& found) {
  const auto is_sibling = [&](const std::string& key) { return found.form.has_sibling(key); };
  if (std::ranges::any_of(found.keys, is_sibling)) return false;
  std::vector<std::string> leaving = found.keys;
  std::erase_if(leaving, [&](const std::string& key) { return keep_.match(key); });
  if (leaving.empty() || leaving.size() >= left() || !is_evident(found, leaving)) return false;
  const std::uint64_t samples = left() - leaving.size();
  for (const std::string& key : leaving) {
    const auto cursor = find(key);
    auto counts = counts_at(*cursor);
    const bool right = contains(counts, samples);
    const Named* known = named(key);
    const bool counter = known != nullptr && known->counter;
    if (!counter && !right) counts.clear();
    add(counter && right ? Why::known : Why::unlike, *cursor, std::move(counts));
  }
  look_.form = found.form.text();
  return true;
}

void Look::find_unlike() {
  if (all_alike()) return;
  const std::vector<std::string> between = keys_between();
  for (StandOut& found : standing_out()) {
    if (found.keys.empty() && found.form.is_together()) return;
    if (!is_whole(found, between)) continue;
    if (!found.keys.empty() && leave_unlike(found)) return;
    break;
  }
  take_wrong_counters();
}

/// Whether records around it have values that may be counts as well: then its own says nothing.
bool Look::others_count(const Named& one) {
  for (const bool ahead : {false, true}) {
    lmdb::Cursor cursor = *find(one.key);
    for (int i = 0; i < kNeighbours; ++i) {
      if (ahead ? !tree_.next(cursor) : !tree_.previous(cursor)) break;
      const std::string key = key_at(tree_, cursor);
      if (!is_metadata(key) && named(key) == nullptr && !counts_at(cursor).empty()) return true;
    }
  }
  return false;
}

/// Keys without a form: what is called like a counter and is a number, where samples are none, is a
/// counter that contradicts them. But a word may be a sample's, and then any few bytes its value.
void Look::take_wrong_counters() {
  std::vector<const Named*> wrong;
  for (const Named& one : named_) {
    if (!one.counter || one.counts.empty() || others_count(one)) continue;
    const std::uint64_t bytes = tree_.node(*find(one.key)).value_size;
    const bool may_be_anything = !is_sure_counter(one.key) && (bytes == 4 || bytes == 8);
    const auto is_near = [this](std::uint64_t count) {
      return count >= left() / kMostOff && count / kMostOff <= left();
    };
    if (!may_be_anything || std::ranges::any_of(one.counts, is_near)) wrong.push_back(&one);
  }
  for (const Named* one : wrong) add(Why::known, *find(one->key), one->counts);
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
  if (choice_.guess && left() > 1 && !looks_grouped(look_, choice_.grouped)) find_unlike();
  return look_;
}

}  // namespace

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
