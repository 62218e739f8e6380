// Checks a whole LMDB file and every record of a data set in it, and goes on after each fault.
//
// Every tree is walked from its root: the main one, the named ones, the free list. Checked are page
// headers and nodes, levels, the order of keys within and across leaves and against the keys of the
// branches above, overflow runs, counts against the tree's header, and that no page has two owners.
// Where a page is bad, its subtree is left out and the walk goes on beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/lmdb/database.hpp"

namespace forebay::lmdb {

struct Fault {
  std::string database;  ///< name of the tree: "main", "free list", or '#' and a name
  PageNumber page = 0;
  std::uint64_t offset = 0;  ///< of the page in the file
  std::string key;           ///< printable; empty when the fault is not one of a record
  std::string text;
};

struct VerifyOptions {
  /// Faults that are kept; further ones are only counted.
  std::size_t max_faults = 100;
};

struct VerifyReport {
  std::uint64_t records = 0;  ///< of the data set
  std::uint64_t pages = 0;    ///< that were checked, overflow pages included
  std::uint64_t free_pages = 0;
  std::uint64_t unreferenced_pages = 0;  ///< in no tree and not free; wasted, but no fault
  std::uint64_t fault_count = 0;
  std::vector<Fault> faults;

  bool sound() const { return fault_count == 0; }
};

/// Called for each readable record of the data set, in key order; `sample` counts them. An Error
/// that it throws (a value that does not decode) becomes a fault of that record.
using RecordVisitor = std::function<void(const Record&)>;

/// Local. Throws only what ends the walk as a whole: io of a mapping, changed. A main database that
/// only holds named ones is verified without records.
VerifyReport verify(Database& database, const VerifyOptions& options = {},
                    const RecordVisitor& visitor = {});

}  // namespace forebay::lmdb
