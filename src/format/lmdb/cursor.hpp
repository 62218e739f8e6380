// A position in a tree: plain numbers, so that it may be copied to any process that opened the
// same snapshot.
//
//   level 0         root page, slot          path[depth - 1] is the leaf: its slot is the record
//   level 1         branch page, slot
//   ...
//   level depth-1   leaf page, slot
//
// A Cursor is not trusted: Tree checks each page and slot that it takes from one.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

inline constexpr std::uint64_t kUnknownSample = ~std::uint64_t{0};

struct Cursor {
  struct Step {
    PageNumber page = kNoPage;
    std::uint64_t slot = 0;
    bool operator==(const Step&) const = default;
  };

  std::uint64_t sample = kUnknownSample;  ///< number of the record in key order, where known
  std::uint64_t moved = 0;  ///< records passed since the position was looked up by key
  std::uint32_t depth = 0;  ///< levels of the path; 0: behind the last record, or nowhere
  std::uint32_t padding = 0;
  std::array<Step, kMaxDepth> path{};

  bool valid() const { return depth != 0; }
  Step& leaf() { return path[depth - 1]; }
  const Step& leaf() const { return path[depth - 1]; }
  bool operator==(const Cursor&) const = default;
};

static_assert(std::is_trivially_copyable_v<Cursor> && std::is_standard_layout_v<Cursor>);

}  // namespace forebay::lmdb
