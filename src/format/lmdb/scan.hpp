// Finding all leaves without a sidecar, by all roots together.
//
//   one root     list_leaves()   reads the branch pages, which are few
//   every root   count_leaves()  reads its part of the leaves, in large requests sorted by offset
//   exchange     to_bytes()      less than a byte a record where records lie in file order
//   every root   join_parts()    the parts of all roots, in the order of the leaves
//
// All of it is local; who sends what to whom is the caller's business. The result is a table like
// that of a sidecar, and becomes one by table_sidecar().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/lmdb/database.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay::lmdb {

/// Some of the leaves, looked at: what a root finds out and sends to the others.
using ScanPart = LeafTable;

/// Pages of all leaves in key order. Reads branch pages only, at most as many as the header counts.
/// Throws corrupt when the tree is not as deep or as large as its header says; io, changed.
/// `max_children`, where wanted, becomes the most children that any branch has.
std::vector<PageNumber> list_leaves(Database& database, std::uint32_t* max_children = nullptr);

/// Whether the counts in the header alone say what is on each leaf: one record, no overflow runs.
/// count_leaves() then reads nothing, and no sidecar can be made of the result: nothing is known of
/// the keys.
bool counts_are_known(const TreeFacts& facts);

/// Looks at `leaves`, a contiguous part of what list_leaves() returned, through `reader`. Samples
/// are numbered from 0 in the part. Memory: some 20 MiB, and the result.
/// Throws corrupt (as `explainer` says), io.
ScanPart count_leaves(const TreeFacts& facts, std::span<const PageNumber> leaves,
                      BulkReader& reader, const DamageExplainer& explainer);

/// Flat and self-contained; from bytes it throws corrupt on anything that cannot be a part.
std::vector<std::byte> to_bytes(const ScanPart& part);
ScanPart part_from_bytes(std::span<const std::byte> bytes);

/// The leaves of the whole tree. `parts` are all parts in order.
/// Throws corrupt when they do not add up to what the tree's header says.
std::unique_ptr<TableLeaves> join_parts(const TreeFacts& facts, std::span<const ScanPart> parts);

}  // namespace forebay::lmdb
