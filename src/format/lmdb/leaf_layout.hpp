// How the records of a tree lie in the file, leaf by leaf: what every way to locate produces.
//
//   leaf (page, n records)  -->  its records that are too large for a page  -->  overflow runs
//
// Leaves come in key order, runs in the order of their records in the leaf.
#pragma once

#include <cstdint>
#include <span>

#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

/// The overflow run of one record.
struct LeafRun {
  PageNumber page = 0;      ///< the first
  std::uint32_t pages = 0;  ///< how many
  std::uint16_t slot = 0;   ///< of the record in its leaf
  bool operator==(const LeafRun&) const = default;
};

/// One leaf. `runs` is valid until the producer moves on.
struct LeafLayout {
  PageNumber page = 0;
  std::uint32_t records = 0;
  std::span<const LeafRun> runs;
};

}  // namespace forebay::lmdb
