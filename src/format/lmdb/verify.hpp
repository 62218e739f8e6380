// Checks a whole LMDB file and every record of a data set in it, and goes on after each fault.
//
// Every tree is walked from its root: the main one, the named ones, the free list. Checked are page
// headers and nodes, levels, the order of keys within and across leaves and against the keys of the
// branches above, overflow runs, counts against the tree's header, and that no page has two owners.
// Where a page is bad, its subtree is left out and the walk goes on beside it.
#pragma once

#include <cstddef>

#include "format/data_set.hpp"
#include "format/lmdb/database.hpp"

namespace forebay::lmdb {

struct VerifyOptions {
  /// Faults that are kept; further ones are only counted.
  std::size_t max_faults = 100;
};

/// Calls `visitor` for each readable record of the data set, in key order; `sample` counts them. An
/// Error that it throws (a value that does not decode) becomes a fault of that record. Faults name
/// their tree: "main", "free list", or '#' and a name. Local. Throws only what ends the walk as a
/// whole: io of a mapping, changed. A main database that only holds named ones is verified without
/// records.
PagesReport verify(Database& database, const VerifyOptions& options = {},
                   const RecordSink& visitor = {});

}  // namespace forebay::lmdb
