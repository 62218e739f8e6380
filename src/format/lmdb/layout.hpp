// The file format of LMDB 0.9 (data version 1), as facts about bytes. Little-endian, 64-bit.
//
// A file is an array of pages of one size (4-32 KiB, stated in the meta pages).
//
//   page 0, 1   meta pages: transaction N writes page N % 2, so the newer valid one is the state
//               of the database and the other one the state before it
//   page 2...   nodes of B+-trees, runs of overflow pages, or free pages
//
// Page header, 16 bytes. An overflow run has one header, on its first page, then only data.
//
//    0         8      10      12      14      16
//   +---------+------+-------+-------+-------+----------------------------------------------+
//   | number  | pad  | flags | lower | upper | u16 offsets of nodes ->  free  <- nodes       |
//   +---------+------+-------+-------+-------+----------------------------------------------+
//                            |  pages (u32)  |   lower: end of the offsets, upper: first node
//                            +---------------+   pages: length of an overflow run
//
// Node, at an even offset: low u16, high u16, flags u16, key size u16, key, data.
//
//   leaf     data size = low | high << 16. Data are the value itself, or with kNodeOverflow the
//            u64 number of the first page of a run, or with kNodeTree a TreeHeader (48 bytes).
//   branch   child page = low | high << 16 | flags << 32; no data. The key of slot 0 is not used:
//            it stands for "less than all others".
//
// Tree header, 48 bytes: one for the free list and one for the main tree in each meta page, and
// one as the value of each named database in the main tree.
//
//    0      4        6       8         16      24         32       40     48
//   +------+--------+-------+---------+-------+----------+--------+------+
//   | pad  | flags  | depth | branch  | leaf  | overflow | entries| root |   pages of each type
//   +------+--------+-------+---------+-------+----------+--------+------+
//
// Meta page: page header with kPageMeta, then at byte 16
//
//    0       4         8         16         24         72         120         128           136
//   +-------+---------+---------+----------+----------+----------+-----------+-------------+
//   | magic | version | address | map size | free tree| main tree| last page | transaction |
//   +-------+---------+---------+----------+----------+----------+-----------+-------------+
//
// The pad of the free tree is the page size. All leaves of a tree lie at the same depth.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"

namespace forebay::lmdb {

static_assert(std::endian::native == std::endian::little,
              "LMDB files are read in their own byte order");

using PageNumber = std::uint64_t;

inline constexpr PageNumber kNoPage = ~PageNumber{0};  ///< root of an empty tree
inline constexpr PageNumber kFirstTreePage = 2;

inline constexpr std::uint32_t kMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMinPageSize = 4096;
inline constexpr std::uint32_t kMaxPageSize = 32768;
inline constexpr unsigned kMaxDepth = 32;

inline constexpr std::size_t kPageHeaderSize = 16;
inline constexpr std::size_t kNodeHeaderSize = 8;
inline constexpr std::size_t kTreeHeaderSize = 48;
inline constexpr std::size_t kMetaEnd = kPageHeaderSize + 136;  ///< bytes of a meta page in use

// Page flags. Dirty, loose and keep are notes that a writer makes to itself in memory.
inline constexpr std::uint16_t kPageBranch = 0x01;
inline constexpr std::uint16_t kPageLeaf = 0x02;
inline constexpr std::uint16_t kPageOverflow = 0x04;
inline constexpr std::uint16_t kPageMeta = 0x08;
inline constexpr std::uint16_t kPageLeaf2 = 0x20;    ///< packed duplicate values of fixed size
inline constexpr std::uint16_t kPageSubPage = 0x40;  ///< duplicate values inside a node
inline constexpr std::uint16_t kPageTypeMask =
    kPageBranch | kPageLeaf | kPageOverflow | kPageMeta | kPageLeaf2 | kPageSubPage;

// Node flags on leaves.
inline constexpr std::uint16_t kNodeOverflow = 0x01;
inline constexpr std::uint16_t kNodeTree = 0x02;
inline constexpr std::uint16_t kNodeDuplicates = 0x04;

// Tree flags: how keys compare, and whether a key may occur more than once.
inline constexpr std::uint16_t kTreeReverseKey = 0x02;
inline constexpr std::uint16_t kTreeDuplicates = 0x04;
inline constexpr std::uint16_t kTreeIntegerKey = 0x08;

struct PageHeader {
  PageNumber number = 0;
  std::uint16_t flags = 0;
  std::uint16_t lower = 0;
  std::uint16_t upper = 0;

  /// Length of an overflow run, which shares the bytes of `lower` and `upper`.
  std::uint32_t run_length() const { return lower | (std::uint32_t{upper} << 16); }
};

struct TreeHeader {
  std::uint32_t pad = 0;
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t branch_pages = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint64_t entries = 0;
  PageNumber root = kNoPage;

  bool empty() const { return root == kNoPage; }
  std::uint64_t pages() const { return branch_pages + leaf_pages + overflow_pages; }
  bool operator==(const TreeHeader&) const = default;
};

struct Meta {
  TreeHeader free_tree;
  TreeHeader main_tree;
  std::uint64_t map_size = 0;
  PageNumber last_page = 0;
  std::uint64_t transaction = 0;

  std::uint32_t page_size() const { return free_tree.pad; }
  bool operator==(const Meta&) const = default;
};

PageHeader decode_page_header(std::span<const std::byte> page);
TreeHeader decode_tree_header(std::span<const std::byte> bytes);
/// `page` starts at the page and holds at least kMetaEnd bytes.
Meta decode_meta(std::span<const std::byte> page);

/// Pages that an overflow run needs for `size` bytes; the run may be longer after an update.
constexpr std::uint64_t overflow_pages(std::uint64_t size, std::uint32_t page_size) {
  return (kPageHeaderSize - 1 + size) / page_size + 1;
}

/// Upper bound of nodes on a page: an offset, a header and a key of one byte each.
constexpr std::uint64_t max_nodes(std::uint32_t page_size) {
  return (page_size - kPageHeaderSize) / (2 + kNodeHeaderSize + 2);
}

/// What makes `header` impossible in a file of `file_pages` pages whose last used page is
/// `last_page`; empty when nothing does. A header that passes bounds every walk over its tree.
std::string impossible(const TreeHeader& header, PageNumber last_page, std::uint64_t file_pages,
                       std::uint32_t page_size);

/// Orders keys as the tree's flags say: negative, 0 or positive.
int compare_keys(std::span<const std::byte> a, std::span<const std::byte> b,
                 std::uint16_t tree_flags);

}  // namespace forebay::lmdb
