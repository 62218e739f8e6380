// One walk over all leaves of a database: everything that a sidecar can be made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"

namespace forebay::lmdb {

// Where the leaves and runs of a whole tree are, in memory, for comparing replays with them.
//
// Kept only as long as it may have a recipe: all records have runs of one length, or all have none.

/// 8 bytes a record with a run, and 16 a leaf. A value; one thread at a time.
class UniformLayout {
 public:
  /// Leaves in key order. One that no recipe gives makes the layout not uniform, and empty.
  void add(const LeafLayout& leaf);
  void refuse();

  bool uniform() const { return uniform_; }
  std::uint64_t records() const { return records_; }
  std::size_t leaves() const { return leaves_.size(); }

  /// Whether leaf `index` < leaves() is `leaf`.
  bool equals(std::size_t index, const LeafLayout& leaf) const;
  /// Number of the first record of leaf `index` < leaves() whose run is not as in `leaf`; of the
  /// record behind both where there is none. Only where records have runs.
  std::uint64_t first_other_run(std::size_t index, const LeafLayout& leaf) const;
  bool has_runs() const { return run_pages_ != 0; }

 private:
  struct Leaf {
    PageNumber page = 0;
    std::uint64_t first_record = 0;
  };
  std::uint64_t end_of(std::size_t index) const;

  bool uniform_ = true;
  std::uint32_t run_pages_ = 0;
  std::uint64_t records_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<PageNumber> runs_;  ///< of each record, when there are any
};

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
