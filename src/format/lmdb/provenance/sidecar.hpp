// The sidecar of a data set: where its leaves and overflow runs lie, kept beside the data.
//
//    0         8         12       16         24
//   +---------+---------+--------+----------+-------------+-----------+-----+----------+--------+
//   | magic   | version | form   | checksum | fingerprint | directory | key | segments | key    |
//   |         | u32     | u32    | XXH3 u64 | text        |           | rule|          | digests|
//   +---------+---------+--------+----------+-------------+-----------+-----+----------+--------+
//                                  over all bytes from 24 on; docs/provenance.md has the rest
//
// A sidecar is a hint and never believed: its fingerprint must be that of the data set at open, and
// each leaf is checked against it when it is first read (leaf_index.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/tree_facts.hpp"

namespace forebay::lmdb {

enum class SidecarForm : std::uint32_t { table = 1, recipe = 2 };

/// A usable sidecar, or why it is not used.
struct SidecarResult {
  std::unique_ptr<LeafProducer> leaves;  ///< null when it is not used
  std::string problem;                   ///< "made for another state of the data set: ..."
  explicit operator bool() const { return leaves != nullptr; }
};

/// Reads a sidecar; keeps a copy of what it needs. Never throws for what the bytes are: `problem`
/// then says what is wrong (truncated, tampered, another version, stale).
SidecarResult load_sidecar(std::span<const std::byte> bytes, const TreeFacts& facts);

}  // namespace forebay::lmdb
