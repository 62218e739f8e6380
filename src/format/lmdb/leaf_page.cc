#include "format/lmdb/leaf_page.hpp"

namespace forebay::lmdb {

SeenLeaf look_at_leaf(const Page& page, std::uint32_t page_size, std::vector<LeafRun>& runs) {
  if (!page.is_leaf()) page.damaged("a branch page where a leaf belongs");
  SeenLeaf leaf{.layout = {.page = page.number(), .records = page.count(), .runs = {}},
                .first_key = page.node(0).key,
                .last_key = page.node(page.count() - 1).key};
  runs.clear();
  for (unsigned slot = 0; slot < page.count(); ++slot) {
    const Node node = page.node(slot);
    if (!node.is_overflow()) continue;
    runs.push_back({.page = node.overflow_page(),
                    .pages = static_cast<std::uint32_t>(overflow_pages(node.value_size, page_size)),
                    .slot = static_cast<std::uint16_t>(slot)});
  }
  leaf.layout.runs = runs;
  return leaf;
}

}  // namespace forebay::lmdb
