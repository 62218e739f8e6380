// The layout of one leaf as its own bytes tell it.
#pragma once

#include <vector>

#include "format/lmdb/page.hpp"
#include "format/lmdb/provenance/leaf_table.hpp"

namespace forebay::lmdb {

/// `runs` holds the overflow runs of the result. Values that are no samples (named databases) lie
/// in the leaf. Throws what the page's explainer makes of a page that is no leaf, or damaged.
SeenLeaf look_at_leaf(const Page& page, std::uint32_t page_size, std::vector<LeafRun>& runs);

}  // namespace forebay::lmdb
