// What is unlike all other keys, and counters where keys have nothing in common.
#include <algorithm>

#include "format/convention/key_look.hpp"

namespace forebay::convention {
namespace {

using Why = MetadataRecord::Why;

// As many alike for one that is not say that it is none of them.
constexpr std::uint64_t kAlikeForOne = 10;
constexpr std::uint64_t kNumbersForOne = 3;  // where keys are nothing but numbers
constexpr int kKeysAtAPlace = 16;
// Between the first key and the last one; all keys of a database that has no more than so many.
constexpr std::uint64_t kPlaces = 8;
constexpr std::uint64_t kFewKeys = 256;
// Records on either side, whose values show what those of samples are.
constexpr int kNeighbours = 3;

}  // namespace

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

/// By each form that keys at the ends have, the likeliest first.
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
bool Look::is_evident(const KeyForm& form, std::span<const lmdb::Cursor> leaving) {
  const std::uint64_t samples = left() - leaving.size();
  for (const MetadataRecord& record : look_.metadata) {
    if (contains(record.counts, samples)) return true;
    if (contains(record.counts, left())) return false;
  }
  const bool numbers = form.is_plain_number();
  bool all_known = true;
  for (const lmdb::Cursor& cursor : leaving) {
    if (contains(counts_at(cursor), samples)) return true;
    const Named* known = named(key_at(tree_, cursor));
    all_known = all_known && known != nullptr && (known->counter || numbers);
  }
  if (all_known && form.is_narrow()) return true;
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
  std::vector<lmdb::Cursor> leaving;
  for (const std::string& key : found.keys) {
    if (found.form.has_sibling(key)) return false;
    if (keep_.match(key)) continue;
    const auto cursor = find(key);
    if (!cursor) return false;  // the tree is out of order, which is told by whoever reads it
    leaving.push_back(*cursor);
  }
  if (leaving.empty() || leaving.size() >= left() || !is_evident(found.form, leaving)) return false;
  const std::uint64_t samples = left() - leaving.size();
  for (const lmdb::Cursor& cursor : leaving) {
    const Named* known = named(key_at(tree_, cursor));
    auto counts = known != nullptr ? known->counts : counts_at(cursor);
    const bool right = contains(counts, samples);
    const bool counter = known != nullptr && known->counter;
    if (!counter && !right) counts.clear();
    add(counter && right ? Why::known : Why::unlike, cursor, std::move(counts));
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
    lmdb::Cursor cursor = one.at;
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
    const bool counts = one.counter && !one.counts.empty() && !others_count(one);
    if (counts && (is_sure_counter(one.key) || is_near(one.counts))) wrong.push_back(&one);
  }
  for (const Named* one : wrong) add(Why::known, one->at, one->counts);
}

}  // namespace forebay::convention
