// The facts from which the layout of a database can be computed instead of looked up.
//
// liblmdb's page allocator is deterministic: a database that was written from an empty file, in key
// order, with records of one footprint and commits at even intervals lies where it lies because of
// these few numbers alone (see replay.hpp). They are the six that "database provenance information"
// means in Pumma's dissertation, section 5.2.2 (commit frequency, records a leaf, children a
// branch, record size, insert order, meta pages), and those that it leaves out and that matter as
// well: page size, key size, number of records, append or plain put, which database, and how it
// was created. Records a leaf and children a branch follow from the sizes.
//
// As bytes, each number a varint (byte_stream.hpp):
//
//   version  options  page size  key size  value size  records  commit every  first commit
//   name size  name
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

/// How a database was built. A value; what holds of it is checked by validate().
struct Recipe {
  std::uint64_t records = 0;
  std::uint32_t page_size = 0;
  /// Bytes of a key and a value. Others may be longer or shorter as long as they take the same
  /// room: see Footprint.
  std::uint32_t key_size = 0;
  std::uint32_t value_size = 0;
  /// Records a transaction; the last one may hold fewer. 0: all in one.
  std::uint64_t commit_every = 0;
  /// Records of the first transaction where it differs, as in programs that commit when the number
  /// of the record is divisible by something. 0: as the others.
  std::uint64_t first_commit = 0;
  /// Records were put with MDB_APPEND, which fills leaves; a plain put splits the last leaf.
  bool append = false;
  /// A transaction before the first record created the database, or gave it its flags.
  bool created_apart = false;
  /// The named database that holds the records, alone in its file; empty: the main one.
  std::string name;

  bool operator==(const Recipe&) const = default;
};

inline constexpr unsigned kMetaPages = 2;          ///< before the first page of a tree
inline constexpr std::uint32_t kMaxKeySize = 511;  ///< of liblmdb as everybody builds it
inline constexpr std::uint64_t kMaxRecipeRecords = std::uint64_t{1} << 48;

/// Bytes of a page for nodes and their slots.
constexpr std::uint32_t page_room(std::uint32_t page_size) {
  return page_size - static_cast<std::uint32_t>(kPageHeaderSize);
}

/// The first child of a branch has no key: a slot and a header.
inline constexpr std::uint32_t kFirstChildBytes = 2 + static_cast<std::uint32_t>(kNodeHeaderSize);

/// What a record takes of pages. LMDB rounds nodes to even sizes and runs to whole pages, so
/// records of slightly different lengths may have one footprint, and then lie as if all were equal.
struct Footprint {
  std::uint32_t leaf_bytes = 0;    ///< of a leaf, slot included
  std::uint32_t branch_bytes = 0;  ///< of a branch, when its key separates two pages
  std::uint32_t run_pages = 0;     ///< overflow pages of the value; 0: it lies in the leaf
  bool operator==(const Footprint&) const = default;
};

Footprint footprint(std::uint32_t key_size, std::uint32_t value_size, std::uint32_t page_size);
Footprint footprint(const Recipe& recipe);

/// Two of the papers' facts: how many records a leaf and how many children a branch can hold. A
/// plain put or a split of a branch at the right edge leaves one fewer on the left page.
std::uint32_t max_records_per_leaf(const Recipe& recipe);
std::uint32_t max_children_per_branch(const Recipe& recipe);

/// What no database can have; empty when nothing. Only then are the functions above defined, and a
/// replay is safe, whoever wrote the recipe.
std::string impossible(const Recipe& recipe);
/// Throws corrupt with what is impossible.
void validate(const Recipe& recipe);

/// At most kMaxRecipeBytes.
std::vector<std::byte> to_bytes(const Recipe& recipe);
/// Throws corrupt on bytes that are no valid recipe.
Recipe recipe_from_bytes(std::span<const std::byte> bytes);
inline constexpr std::size_t kMaxRecipeBytes = 64 + kMaxKeySize;

}  // namespace forebay::lmdb
