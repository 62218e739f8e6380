// A bounded look at the keys of one database: a few look-ups from the root, however many records
// there are. Values are read of counters only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/lmdb/database.hpp"

namespace forebay::convention {

/// A record that is no sample.
struct MetadataRecord {
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
  bool bytes_order = true;  ///< keys are compared as bytes
};

/// Throws corrupt, io, changed.
KeyLook look_at_keys(lmdb::Database& database);

/// Finds the numbers of `metadata`: at once where they are the first or last records, else by a
/// walk.
void number_metadata(lmdb::Database& database, std::vector<MetadataRecord>& metadata);

/// Hands every key to `use`, with its number, until that returns false. Reads no overflow pages.
void for_each_key(lmdb::Database& database,
                  const std::function<bool(std::uint64_t record, std::string_view key)>& use);

/// A key, for messages.
std::string shown_key(std::string_view key);

}  // namespace forebay::convention
