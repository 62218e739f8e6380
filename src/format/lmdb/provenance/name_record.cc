#include "format/lmdb/provenance/name_record.hpp"

namespace forebay::lmdb {

void NameRecord::create(PageAllocator& pages) {
  leaf_ = pages.allocate(1);
  dirty_ = true;
  tree_changed_ = true;
}

void NameRecord::touch(PageAllocator& pages) {
  if (dirty_) return;
  const PageNumber copy = pages.allocate(1);
  pages.release(leaf_);
  leaf_ = copy;
  dirty_ = true;
}

void NameRecord::before_put(PageAllocator& pages, bool tree_is_empty) {
  if (!exists() || tree_changed_) return;
  if (!tree_is_empty) touch(pages);
  tree_changed_ = true;
}

void NameRecord::before_commit(PageAllocator& pages) {
  if (!exists()) return;
  if (tree_changed_) touch(pages);
  dirty_ = false;
  tree_changed_ = false;
}

void NameRecord::write(NumberWriter& out) const {
  out.put(leaf_ + 1);  // kNoPage becomes 0
  out.put(dirty_ ? 1 : 0);
  out.put(tree_changed_ ? 1 : 0);
}

NameRecord NameRecord::read(NumberReader& in) {
  NameRecord record;
  record.leaf_ = in.get(0, kMaxPageNumber, "the page of the name") - 1;
  record.dirty_ = in.get_flag("the state of the name's page");
  record.tree_changed_ = in.get_flag("the state of the named tree");
  return record;
}

}  // namespace forebay::lmdb
