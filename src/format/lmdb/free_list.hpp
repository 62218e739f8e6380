// The list of pages that a writer may use again: a tree whose keys are transaction numbers (u64)
// and whose values are lists of pages freed by them: a count (u64), then page numbers, largest
// first.
#pragma once

#include <cstdint>
#include <functional>

#include "format/lmdb/tree.hpp"

namespace forebay::lmdb {

struct FreePages {
  std::uint64_t transaction = 0;       ///< that freed them
  std::span<const std::byte> numbers;  ///< u64 each

  std::uint64_t count() const { return numbers.size() / sizeof(PageNumber); }
  PageNumber operator[](std::uint64_t i) const {
    return load<PageNumber>(numbers, i * sizeof(PageNumber));
  }
};

/// Calls `visit` for each record of the free list of the snapshot. Throws corrupt, io, changed.
void visit_free_list(PageReader& pages, const std::function<void(const FreePages&)>& visit);

/// Checks the form of one record of the free list.
FreePages decode_free_pages(const Entry& entry, const DamageExplainer& explainer, PageNumber leaf);

}  // namespace forebay::lmdb
