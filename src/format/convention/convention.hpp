// Which records make which sample: the convention by which somebody has filled LMDB databases,
// recognised or asked for, as a map.
//
//   plain       every record is a sample; but those that only tell of samples, as counters do
//   grouped     "image-000000001" and "label-000000001" are parts of one sample
//   meta_info   image-restoration databases: samples in the order of the list beside the data
//
// Databases one behind the other become one (A,B); databases beside each other (x=A&y=B) give each
// sample a part each, by equal keys.
//
//   sample i  -->  for each part: record r of all records  -->  record r - first(d) of database d
//
// What a look at the ends and counts cannot tell is checked when samples are read: see
// ConventionSet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/convention/database_list.hpp"
#include "format/convention/layout.hpp"

namespace forebay::convention {

/// What one database was recognised as.
struct DatabaseNote {
  std::string path;
  std::uint64_t first_record = 0;  ///< of all records of the data set
  std::uint64_t records = 0;
  ConventionName convention = ConventionName::plain;
  std::string why;
  std::vector<MetadataRecord> metadata;  ///< of which records are no samples
  std::string form;                      ///< KeyLook::form
  std::string guess;                     ///< Layout::guess
};

/// Immutable once made; safe from many threads.
class Convention {
 public:
  /// A part of every sample.
  struct Part {
    std::string name;    ///< empty where samples are records as they are
    std::string prefix;  ///< of its keys; what follows is the same in all parts
    RecordMap records;
    std::size_t first_database = 0;
  };

  /// `databases` are those of find_databases(), opened, in its order. Throws corrupt for what
  /// contradicts itself and for missing partners, by name; usage; io, changed. Local.
  static Convention arrange(const std::vector<PartDatabases>& list,
                            std::span<lmdb::Database* const> databases,
                            const ConventionOptions& options);

  std::uint64_t samples() const { return parts_[0].records.samples(); }
  std::span<const Part> parts() const { return parts_; }
  /// Whether a sample is several records.
  bool has_parts() const { return !parts_[0].name.empty(); }
  std::vector<std::string> part_names() const;
  std::span<const DatabaseNote> databases() const { return databases_; }
  /// First sample of each database, and the number of samples, where samples of part 0 run from
  /// database to database; empty for one database.
  std::vector<std::uint64_t> bounds() const { return bounds_; }
  /// "grouped (image, label)", "plain, 3 databases".
  std::string text() const;
  /// Of the map and the parts' names.
  std::string fingerprint() const;
  std::uint64_t memory_bytes() const;

 private:
  std::vector<Part> parts_;
  std::vector<DatabaseNote> databases_;
  std::vector<std::uint64_t> bounds_;
};

}  // namespace forebay::convention
