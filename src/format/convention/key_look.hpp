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
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/convention/key_form.hpp"
#include "format/convention/key_words.hpp"

namespace forebay::convention {

// More records are not kept beside samples.
inline constexpr std::size_t kMostUnlike = 8;

inline std::string key_at(lmdb::Tree& tree, const lmdb::Cursor& cursor) {
  return std::string(chars_of(tree.node(cursor).key));
}

inline bool contains(const std::vector<std::uint64_t>& counts, std::uint64_t count) {
  return std::ranges::find(counts, count) != counts.end();
}

/// A name that nothing but a counter has: no word that a sample, or another fact, may be called.
inline bool is_sure_counter(std::string_view key) {
  return !std::ranges::all_of(key, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// A record with a well-known key, until it is known what it is.
struct Named {
  std::string key;
  lmdb::Cursor at;
  bool counter = false;
  std::vector<std::uint64_t> counts;
};

/// Keys that stand out beside those of a form.
struct StandOut {
  KeyForm form;
  std::vector<std::string> keys;
  std::string first;  ///< of the form
  std::string last;

  /// The narrow forms first, of these the one that the most keys have.
  bool operator<(const StandOut& other) const {
    if (form.is_narrow() != other.form.is_narrow()) return form.is_narrow();
    if (keys.size() != other.keys.size()) return keys.size() < other.keys.size();
    return form.is_narrower_than(other.form);
  }
};

/// One look at one database.
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
  void add(MetadataRecord::Why why, const lmdb::Cursor& cursor,
           std::vector<std::uint64_t> counts = {});
  std::optional<lmdb::Cursor> find(std::string_view key);

  // What is asked for, well known, or beside the parts of samples: key_look.cc.
  void walk();
  void look_up_asked();
  const Named* named(std::string_view key) const;
  bool is_near(const std::vector<std::uint64_t>& counts) const;
  void find_reserved();
  void find_named();
  void take_true_counters();
  void find_groups();
  bool group_at(lmdb::Cursor& cursor, const NumberedKey& first);
  void take_beside_groups();
  void take_odd();

  // What may be parts of samples by names at the ends of keys: key_suffixes.cc.
  bool have_all(std::span<const std::string> keys, const std::set<std::string>& suffixes);
  void tell_suffixes();

  // What is unlike the other keys: unlike_keys.cc.
  std::vector<std::string> end_keys(bool back);
  std::vector<std::string> keys_between();
  std::vector<StandOut> standing_out();
  bool is_whole(StandOut& found, std::span<const std::string> between);
  bool is_evident(const KeyForm& form, std::span<const lmdb::Cursor> leaving);
  bool all_alike() const;
  bool leave_unlike(const StandOut& found);
  void find_unlike();
  bool others_count(const Named& one);
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

}  // namespace forebay::convention
