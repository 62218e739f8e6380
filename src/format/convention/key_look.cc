// Which records are no samples, and whether the others are parts of samples: by look-ups from the
// root, however many records there are.
//
//   asked       KeyChoice::leave_out: looked up; patterns cost a walk over all keys
//   databases   by the flag of their nodes. A walk finds them; it is spared where the pages of the
//               tree and the free list are all that there are, as others have pages as well
//   known       the keys of metadata_keys(), and those of counter_keys() that count right
//   unlike      a few at the ends, beside keys that share a form; or beside parts of samples
//
// Keys of one form lie together in the tree, so what is unlike them lies at its ends. Between the
// ends, keys are looked at where they are likely to lie: one that is unlike the others there means
// that keys have no form.
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

/// What programs keep beside numbered samples, however few these are.
constexpr std::array<std::string_view, 7> kBesideNumbers = {
    "__metadata__", "deleted_ids",  "id_to_idx",           "metadata",
    "nextid",       "num_examples", "serialization_format"};

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

bool is_counter(std::string_view key) { return std::ranges::binary_search(counter_keys(), key); }

/// Keys that stand out beside those of a form.
struct StandOut {
  KeyForm form;
  std::vector<std::string> keys;
  std::string first;  ///< of the form
  std::string last;
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
  void find_known();
  void find_true_counters();
  void find_groups();
  bool group_at(lmdb::Cursor& cursor, const NumberedKey& first);
  void take_beside_groups();
  std::vector<std::string> end_keys(bool back);
  std::optional<StandOut> stand_out();
  bool is_whole(StandOut& found);
  bool is_evident(const StandOut& found, std::span<const std::string> leaving);
  bool all_alike() const;
  void find_unlike();

  lmdb::Database& database_;
  lmdb::Tree& tree_;
  const KeyChoice& choice_;
  KeyPatterns leave_out_;
  KeyPatterns keep_;
  KeyLook look_;
  std::vector<std::string> odd_;  ///< among groups
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
  const lmdb::Cursor cursor = tree_.seek(bytes_of(key));
  if (!cursor.valid() || key_at(tree_, cursor) != key) return std::nullopt;
  return cursor;
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

void Look::find_known() {
  for (const MetadataKey& known : metadata_keys()) {
    if (keep_.match(known.key)) continue;
    const auto cursor = find(known.key);
    if (!cursor) continue;
    add(Why::known, *cursor, known.counts ? counts_at(*cursor) : std::vector<std::uint64_t>());
  }
}

void Look::find_true_counters() {
  for (const std::string_view key : counter_keys()) {
    if (keep_.match(key)) continue;
    const auto cursor = find(key);
    if (!cursor) continue;
    auto counts = counts_at(*cursor);
    if (contains(counts, left() - 1)) add(Why::known, *cursor, std::move(counts));
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

/// Records beside the parts of samples do not undo these.
void Look::take_beside_groups() {
  const bool numbered = odd_.empty();
  const auto is_lone = [](const KeyGroup& group) { return group.first == group.last; };
  KeyLook with = look_;
  if (std::ranges::count_if(look_.groups, is_lone) + 2 <= std::ssize(look_.groups)) {
    std::erase_if(with.groups, [&](const KeyGroup& group) {
      const std::string key = group.prefix + group.first;
      const bool beside = choice_.guess && is_lone(group) && !is_usual_part(group.prefix) &&
                          odd_.size() < kMostUnlike && !keep_.match(key);
      if (beside) odd_.push_back(key);
      return beside;
    });
  }
  if (odd_.empty()) return;
  const bool grouped = look_.entries >= 2 * odd_.size() && looks_grouped(with, choice_.grouped);
  if (grouped) {
    look_.groups = with.groups;
    look_.form = "parts of samples";
    for (const std::string& key : odd_) {
      const auto cursor = find(key);
      if (cursor) {
        add(Why::unlike, *cursor,
            is_counter(key) ? counts_at(*cursor) : std::vector<std::uint64_t>());
      }
    }
  } else if (!numbered) {
    look_.groups.clear();
  }
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

/// By the form that leaves the fewest keys at both ends.
std::optional<StandOut> Look::stand_out() {
  const auto front = end_keys(false);
  const auto back = end_keys(true);
  std::vector<std::string> models = front;
  models.insert(models.end(), back.begin(), back.end());
  std::optional<StandOut> best;
  for (const std::string& model : models) {
    const auto form = KeyForm::of(model);
    if (!form || (best && best->form == *form)) continue;
    const auto has = [&](const std::string& key) { return form->has(key); };
    const auto first = std::ranges::find_if(front, has);
    const auto last = std::ranges::find_if(back, has);
    if (first == front.end() || last == back.end()) continue;
    StandOut found{.form = *form, .keys = {front.begin(), first}, .first = *first, .last = *last};
    found.keys.insert(found.keys.end(), back.begin(), last);
    if (!best || found.keys.size() < best->keys.size()) best = std::move(found);
  }
  return best;
}

/// Whether all keys between the ends seem to have the form. Of hashes, capitals and '_' lie between
/// digits and letters.
bool Look::is_whole(StandOut& found) {
  std::vector<std::string> places = found.form.places();
  places.emplace_back(":");
  for (const std::string& place : places) {
    lmdb::Cursor cursor = tree_.seek(bytes_of(std::max(place, found.first)));
    for (int i = 0; i < kKeysAtAPlace && cursor.valid(); ++i, tree_.next(cursor)) {
      const std::string key = key_at(tree_, cursor);
      if (key > found.last) break;
      if (found.form.has(key) || is_metadata(key)) continue;
      const bool between = found.form.is_hash() && key > ":" && key < "a";
      if (!between || found.keys.size() == kMostUnlike) return false;
      if (std::ranges::find(found.keys, key) == found.keys.end()) found.keys.push_back(key);
    }
  }
  return found.keys.size() <= kMostUnlike;
}

/// Counters decide, else how many are alike.
bool Look::is_evident(const StandOut& found, std::span<const std::string> leaving) {
  const std::uint64_t samples = left() - leaving.size();
  for (const MetadataRecord& record : look_.metadata) {
    if (contains(record.counts, samples)) return true;
    if (contains(record.counts, left())) return false;
  }
  bool all_known = true;
  for (const std::string& key : leaving) {
    if (contains(counts_at(*find(key)), samples)) return true;
    all_known = all_known && std::ranges::find(kBesideNumbers, key) != kBesideNumbers.end();
  }
  const bool numbers = found.form.is_plain_number();
  if (numbers && all_known) return true;
  return samples >= (numbers ? kNumbersForOne : kAlikeForOne) * leaving.size();
}

/// As both ends say it.
bool Look::all_alike() const {
  if (is_metadata(look_.first_key) || is_metadata(look_.last_key)) return false;
  const auto form = KeyForm::of(look_.first_key);
  return form && !form->is_hash() && form->has(look_.last_key);
}

void Look::find_unlike() {
  if (all_alike()) return;
  std::optional<StandOut> found = stand_out();
  if (!found || (found->keys.empty() && !found->form.is_hash())) return;
  if (!is_whole(*found) || found->keys.empty()) return;
  const auto is_sibling = [&](const std::string& key) { return found->form.has_sibling(key); };
  if (std::ranges::any_of(found->keys, is_sibling)) return;
  std::vector<std::string> leaving = found->keys;
  std::erase_if(leaving, [&](const std::string& key) { return keep_.match(key); });
  if (leaving.empty() || !is_evident(*found, leaving)) return;
  const std::uint64_t samples = left() - leaving.size();
  for (const std::string& key : leaving) {
    const auto cursor = find(key);
    auto counts = counts_at(*cursor);
    if (!is_counter(key) && !contains(counts, samples)) counts.clear();
    add(Why::unlike, *cursor, std::move(counts));
  }
  look_.form = found->form.text();
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
    find_known();
    find_true_counters();
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
