// What the records of one database are: the samples' parts, and which records they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "format/convention/key_look.hpp"
#include "format/convention/record_map.hpp"

namespace forebay::convention {

/// What the user says of it.
struct ConventionOptions {
  ConventionName convention = ConventionName::automatic;
  KeyOrder order_by = KeyOrder::key;
};

/// One part of every sample of a database.
struct LayoutPart {
  std::string name;    ///< empty where samples have one part without a name
  std::string prefix;  ///< of its keys, before the number
  RecordMap records;
};

struct Layout {
  ConventionName convention = ConventionName::plain;
  std::string why;                ///< what it was told by
  std::vector<LayoutPart> parts;  ///< all with as many samples
  std::vector<MetadataRecord> metadata;

  std::uint64_t samples() const { return parts[0].records.samples(); }
};

/// Looks at `database`; reads all keys only where counts and ends do not tell. Throws corrupt for
/// counts, numbers and lists that contradict the records, naming both; usage for a convention that
/// is not that of the data; io, changed.
Layout lay_out(lmdb::Database& database, const ConventionOptions& options);

/// Whether every record is a sample, in key order, as far as a bounded look tells. Bytes that
/// cannot be understood are left to whoever reads them: true.
bool is_plain(lmdb::Database& database, const ConventionOptions& options);

// Parts of lay_out().

/// Whether the look says that samples have several parts. `asked`: the user says so.
bool looks_grouped(const KeyLook& look, bool asked);
/// Throws corrupt naming a missing partner.
Layout lay_out_groups(lmdb::Database& database, const KeyLook& look);
/// The order of numbers in the keys, metadata left out. Throws usage naming a key without one.
RecordMap order_by_number(lmdb::Database& database, const std::vector<MetadataRecord>& metadata);

/// The list beside the data file, whether it exists or not; empty where there can be none.
std::string meta_info_path(const lmdb::Database& database);
/// As the list at `path` says.
Layout lay_out_by_list(lmdb::Database& database, const std::string& path);

/// Throws corrupt when a counter contradicts `samples`.
void check_counters(const lmdb::Database& database, const std::vector<MetadataRecord>& metadata,
                    std::uint64_t samples);

}  // namespace forebay::convention
