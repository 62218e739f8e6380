// Finding all leaves without a sidecar, by all roots together.
//
//   one root     list_leaves()   reads the branch pages, which are few
//   every root   count_leaves()  reads its part of the leaves, in large requests sorted by offset
//   exchange     to_bytes()      a few bytes a leaf, less than one a record
//   every root   join_parts()    the parts of all roots, in the order of the leaves
//
// All of it is local; who sends what to whom is the caller's business.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/tree_facts.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay::lmdb {

/// Pages of all leaves in key order. Reads branch pages only, as many as the header counts.
/// Throws corrupt when the tree is not as deep or as large as its header says.
std::vector<PageNumber> list_leaves(Database& database);

/// Whether the counts in the header alone say what is on each leaf: one record, no overflow runs.
/// count_leaves() then reads nothing.
bool counts_are_known(const TreeFacts& facts);

/// Some of the leaves, looked at.
struct ScanPart {
  std::uint64_t leaves = 0;
  std::uint64_t samples = 0;
  std::vector<std::byte> bytes;  ///< table segments: see provenance/table.hpp
};

/// Flat, self-contained; from_bytes() throws corrupt on anything that to_bytes() did not make.
std::vector<std::byte> to_bytes(const ScanPart& part);
ScanPart part_from_bytes(std::span<const std::byte> bytes);

/// Looks at `leaves`, a contiguous part of what list_leaves() returned, through `reader`.
/// Throws corrupt (through `explainer`), unsupported (named databases among the records), io.
ScanPart count_leaves(const TreeFacts& facts, std::span<const PageNumber> leaves,
                      BulkReader& reader, const DamageExplainer& explainer);

/// The leaves of the whole tree. `parts` are all parts in order.
/// Throws corrupt when they do not add up to what the tree's header says.
std::unique_ptr<LeafProducer> join_parts(const TreeFacts& facts, std::span<const ScanPart> parts);

}  // namespace forebay::lmdb
