// The sidecar of a data set: where its leaves and overflow runs lie, kept beside the data.
//
//    0         8         12       16         24
//   +---------+---------+--------+----------+-------------+--------------------------------------+
//   | magic   | version | form   | checksum | fingerprint | table: the leaves (leaf_table.hpp)   |
//   |         | u32     | u32    | XXH3 u64 | text        | recipe: facts and checkpoints        |
//   +---------+---------+--------+----------+-------------+--------------------------------------+
//                                  over magic, version, form and all bytes from 24 on
//
// A sidecar is a hint and never believed: its fingerprint must be that of the data set at open, and
// each leaf is checked against it when it is first read (leaf_index.hpp). docs/provenance.md says
// what these checks can see and what they cannot.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/byte_stream.hpp"
#include "format/lmdb/database.hpp"
#include "format/lmdb/dataset_path.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/user_cache.hpp"

namespace forebay::lmdb {

class LeafTable;

enum class SidecarForm : std::uint32_t { table = 1, recipe = 2 };

/// "table" or "recipe".
std::string to_string(SidecarForm form);

/// A usable sidecar, or why it is not used.
struct SidecarResult {
  std::unique_ptr<LeafProducer> leaves;  ///< null when it is not used
  std::string problem;                   ///< "it was made for another state of the data set (...)"
  explicit operator bool() const { return leaves != nullptr; }
};

/// Reads a sidecar; keeps a copy of what it needs. Never throws for what the bytes are: `problem`
/// then says what is wrong (truncated, tampered, another version, stale). Takes a time that depends
/// on the size of the bytes alone, as nothing is expanded.
SidecarResult load_sidecar(std::span<const std::byte> bytes, const TreeFacts& facts);

/// A sidecar of the form `table`. Throws usage when the table does not know the keys of all leaves
/// of the tree.
std::vector<std::byte> table_sidecar(LeafTable table, const TreeFacts& facts);
/// Of what a scan has joined. Throws usage for other forms.
std::vector<std::byte> table_sidecar(const LeafProducer& leaves, const TreeFacts& facts);

/// Any sidecar: header and `body` together, with the checksum.
std::vector<std::byte> seal_sidecar(SidecarForm form, const std::string& fingerprint,
                                    std::span<const std::byte> body);
/// Makes the checksum of changed bytes valid again: for tests, which tamper with what is inside.
void seal_again(std::span<std::byte> sidecar);

// Where sidecars live, and how they get there.
//
//   <data file>.forebay              beside the data: made by `forebay pack` and `provenance`
//   <data file>.<name>.forebay       of a named database; bytes of the name other than letters,
//                                    digits, '-' and '_' as %XX, long names as a hash
//   $XDG_CACHE_HOME/forebay/<hash of the fingerprint>.forebay    (or ~/.cache/forebay): what `auto`
//                                    found out by itself (user_cache.hpp); the same for all copies
//                                    of a data set

/// Beside the data, whether it exists or not. Empty where only the data are: on foreign storage.
std::string sidecar_path(const DatasetPath& dataset);

/// A sidecar as found. Its bytes have not been looked at.
struct FoundSidecar {
  std::string path;
  std::vector<std::byte> bytes;
  bool cached = false;
};

/// The first of these that `fits`: beside the data, then in the cache, where `identity` is asked
/// for. Those that do not exist, cannot be read or are larger than `most_bytes` are left out.
/// Throws what `identity` throws.
std::optional<FoundSidecar> find_sidecar(const DatasetPath& dataset,
                                         const std::function<std::string()>& identity,
                                         std::uint64_t most_bytes,
                                         const std::function<bool(const FoundSidecar&)>& fits);
/// More than any sidecar of a data set with these counts needs.
std::uint64_t most_sidecar_bytes(std::uint64_t entries, std::uint64_t leaf_pages);

}  // namespace forebay::lmdb
