// What the text that names LMDB data may look like, where it is more than one database.
//
//   A                one database: DIR, FILE, either with #NAME, or a URL (lmdb/dataset_path.hpp)
//   A,B              one behind the other, in this order
//   'part-*.lmdb'    those that the pattern matches, sorted by bytes; '#NAME' may follow. Lock
//   files
//                    and sidecars are left out
//   x=A&y=B          aligned: a sample is a record of A and the record of B with the same key
//   x=A,C&y='b-*'    both
//
// A file or directory that exists under the whole text wins.
#pragma once

#include <string>
#include <vector>

namespace forebay::convention {

/// The databases of one part of all samples, one behind the other.
struct PartDatabases {
  std::string name;  ///< empty: samples have one part without a name
  std::vector<std::string> paths;
};

/// At least one part, each of at least one database, none of which has been opened.
/// Throws not_found for a pattern without a match, usage for names that make no sense.
std::vector<PartDatabases> find_databases(const std::string& text);

/// All databases of find_databases(), in its order.
std::vector<std::string> all_databases(const std::string& text);

}  // namespace forebay::convention
