// What single keys and values say: records that are no samples, the counts in them, and numbers at
// the end of keys.
//
// Values come from files and are never unpickled: of the forms in which programs store a small
// count, the bytes are recognised; everything else is not a count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/lmdb/database.hpp"

namespace forebay::convention {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether programs count samples under `key`: "length", "num-samples", "__len__". Samples may be
/// called so, so what the value and the other keys say decides.
bool is_counter_key(std::string_view key);
/// Keys of is_counter_key() without underlines around them, in byte order.
std::span<const std::string_view> counter_keys();
/// "__keys__": what programs call what is no sample.
bool is_reserved_key(std::string_view key);

/// The numbers that `value` may stand for, most likely one first: decimal digits; an integer of 4
/// or 8 bytes; one that was pickled (protocols 0 to 5) or packed by msgpack. Empty: none of these.
std::vector<std::uint64_t> possible_counts(std::span<const std::byte> value);

/// A key that ends in a number: "image-000000001".
struct NumberedKey {
  std::string_view prefix;  ///< up to the number: "image-"
  std::string_view digits;
  std::uint64_t number = 0;
};
/// Nothing when `key` does not end in digits, or in more than 64 bits hold.
std::optional<NumberedKey> numbered_key(std::string_view key);

/// What the user says of records: keys, or patterns of them with '*', '?' and '[...]', as
/// shown_key() shows them, separated by commas.
class KeyPatterns {
 public:
  explicit KeyPatterns(std::string_view text);
  const std::vector<std::string>& all() const { return patterns_; }
  bool empty() const { return patterns_.empty(); }
  /// Whether number `i` names `key`, and whether any does.
  bool matches(std::size_t i, std::string_view key) const;
  bool match(std::string_view key) const;
  /// Whether all keys have to be looked at for it.
  static bool is_pattern(std::string_view text);

 private:
  std::vector<std::string> patterns_;
};

/// "image-" is "image": a prefix as the name of a part. Prefixes of nothing but separators, and
/// empty ones, have none.
std::string part_name(std::string_view prefix);

// A bounded look at the keys of one database: a few look-ups from the root, however many records
// there are. Values are read of counters only.

/// Which records the user wants, or not.
struct KeyChoice {
  std::string leave_out;  ///< KeyPatterns: these are no samples
  std::string keep;       ///< KeyPatterns: these are, whatever they look like
  bool guess = true;      ///< records may be no samples by what their keys look like
  bool grouped = false;   ///< samples have several parts, the user says
};

/// A record that is no sample.
struct MetadataRecord {
  enum class Why : std::uint8_t {
    known,     ///< by its key: a counter that is right, or reserved
    unlike,    ///< all other keys share a form
    database,  ///< a named database
    asked,     ///< KeyChoice::leave_out
  };
  Why why = Why::known;
  std::string key;
  std::vector<std::uint64_t> counts;  ///< what its value may say; empty: no count that is known
  std::uint64_t value_bytes = 0;
  std::uint64_t record = 0;  ///< its number in key order, once it is known
};

/// Keys that share what stands before a number.
struct KeyGroup {
  std::string prefix;
  std::string first;  ///< digits of its first key in key order, and of its last
  std::string last;
};

struct KeyLook {
  std::uint64_t entries = 0;
  std::string first_key;
  std::string last_key;
  std::vector<MetadataRecord> metadata;  ///< in key order
  /// All keys but those of metadata, where the look has met none that is not numbered, and no more
  /// prefixes than a sample has parts; else empty.
  std::vector<KeyGroup> groups;
  std::string form;         ///< what those share beside which Why::unlike stand out
  std::string guess;        ///< what may be meant otherwise, and how to say it; empty: nothing
  std::vector<bool> used;   ///< which of KeyChoice::leave_out name a record
  bool bytes_order = true;  ///< keys are compared as bytes
};

/// Throws corrupt, io, changed.
KeyLook look_at_keys(lmdb::Database& database, const KeyChoice& choice = {});

/// Finds the numbers of `metadata`: at once where they are the first or last records, else by a
/// walk.
void number_metadata(lmdb::Database& database, std::vector<MetadataRecord>& metadata);

/// Hands every key to `use`, with its number, until that returns false. Reads no overflow pages.
void for_each_key(lmdb::Database& database,
                  const std::function<bool(std::uint64_t record, std::string_view key)>& use);

/// A key, for messages.
std::string shown_key(std::string_view key);

}  // namespace forebay::convention
