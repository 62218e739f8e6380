// One walk over all leaves of a database: everything that a sidecar can be made of.
#pragma once

#include <cstdint>
#include <functional>

#include "format/lmdb/database.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "format/lmdb/provenance/uniform_layout.hpp"

namespace forebay::lmdb {

/// Smallest and largest of some sizes, in bytes; both 0 of none.
struct SizeRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  bool operator==(const SizeRange&) const = default;
};

struct LayoutSurvey {
  LeafTable table;       ///< with its keys
  UniformLayout layout;  ///< to compare replays with
  SizeRange keys, values;
  std::uint32_t max_records = 0;   ///< on a leaf
  std::uint32_t max_children = 0;  ///< of a branch; 0 without branches
};

/// Called with the records done so far.
using SurveyProgress = std::function<void(std::uint64_t records)>;

/// Local. Reads branch and leaf pages, no overflow pages. Throws corrupt (also when the tree is not
/// what its header says), unsupported (named databases among the records), io, changed.
LayoutSurvey survey_layout(Database& database, const SurveyProgress& progress = {});

}  // namespace forebay::lmdb
