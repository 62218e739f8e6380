#include "format/lmdb/tree_facts.hpp"

#include <algorithm>

namespace forebay::lmdb {

TreeFacts facts_of(Database& database) {
  const TreeHeader& tree = database.tree().header();
  const Snapshot& snapshot = database.snapshot();
  return {.file = snapshot.file().path(),
          .fingerprint = database.fingerprint().text,
          .entries = tree.entries,
          .leaf_pages = tree.leaf_pages,
          .overflow_pages = tree.overflow_pages,
          .page_size = snapshot.page_size(),
          .tree_flags = tree.flags,
          .end_page = std::min(snapshot.meta().last_page + 1, snapshot.file_pages())};
}

}  // namespace forebay::lmdb
