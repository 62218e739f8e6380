// The record of a named database in the main tree: one leaf page that has to be rewritten in every
// transaction that changes the named tree, because it holds that tree's root.
//
// liblmdb touches this leaf before the first put of a transaction, so that its page number comes
// before all others; but the first put into an empty tree does not, and then the commit does.
#pragma once

#include "format/lmdb/provenance/page_allocator.hpp"

namespace forebay::lmdb {

/// A value. One thread at a time. All methods do nothing while there is no name.
class NameRecord {
 public:
  bool exists() const { return leaf_ != kNoPage; }
  /// Writes the record for the first time.
  void create(PageAllocator& pages);
  void before_put(PageAllocator& pages, bool tree_is_empty);
  /// Before the free list is saved.
  void before_commit(PageAllocator& pages);

  PageNumber leaf() const { return leaf_; }

  void write(NumberWriter& out) const;
  static NameRecord read(NumberReader& in);

 private:
  void touch(PageAllocator& pages);

  PageNumber leaf_ = kNoPage;
  bool dirty_ = false;
  bool tree_changed_ = false;  ///< in this transaction
};

}  // namespace forebay::lmdb
