// The tree that records are appended to: its right edge, which is all that insertions in key order
// can change.
//
//          root    [ o o o o ]           o  children; the last one lies on the right edge
//                          |
//          branch        [ o o ]         A put goes down the edge. Every page of it that is not
//                            |           dirty yet is touched first, from the root to the leaf.
//          leaf            [ r r r ]     r  records
//
// A record that does not fit splits the leaf: a sibling is allocated to its right, then a new root
// when the leaf was the root, then the sibling is linked into the parent, which may have to be
// split in the same way; the record's own overflow run is allocated last.
//
//   leaf, MDB_APPEND   nothing moves: the left leaf stays full
//   leaf, plain put    the last old record moves to the sibling: the left leaf keeps all but one
//   branch, always     the last old child moves to the sibling, where it becomes the first one and
//                      loses its key: the first key of a branch is empty
//
// Whatever is left of the edge is final.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/page_allocator.hpp"
#include "format/lmdb/provenance/recipe.hpp"

namespace forebay::lmdb {

/// A value. One thread at a time.
class RecordTree {
 public:
  explicit RecordTree(const Recipe& recipe);

  bool empty() const { return depth_ == 0; }
  /// Puts between 1 and `most` records, up to the one that completes a leaf, which it then
  /// stops at. Returns how many. Throws corrupt (see PageAllocator; a tree of more than kMaxDepth
  /// levels).
  std::uint64_t put(PageAllocator& pages, std::uint64_t most);
  /// The edge is clean again.
  void commit();

  /// Whether the last put() left a leaf behind: completed() says which, until the next put().
  bool has_completed() const { return completed_count_ != 0; }
  LeafLayout completed() const { return {completed_page_, completed_count_, completed_runs_}; }
  /// The leaf on the edge.
  LeafLayout last_leaf() const { return {edge_[0].page, edge_[0].count, runs_}; }
  /// `flags` and `pad` are 0.
  TreeHeader header() const;

  void write(ByteWriter& out) const;
  /// What write() wrote for a tree of the same recipe. Throws corrupt.
  void read(NumberReader& in);

 private:
  struct EdgePage {
    PageNumber page = kNoPage;
    std::uint32_t count = 0;  ///< records or children
    std::uint32_t used = 0;   ///< bytes, slots included
    bool dirty = false;
  };

  void touch_edge(PageAllocator& pages);
  void split_leaf(PageAllocator& pages);
  void split_branch(PageAllocator& pages, unsigned level);
  void link(PageAllocator& pages, unsigned level);
  void add_root(PageAllocator& pages);
  void place(PageAllocator& pages, std::uint32_t count);
  static EdgePage new_page(PageAllocator& pages);

  Footprint record_;
  std::uint32_t room_;  ///< of an empty page
  bool append_;

  std::array<EdgePage, kMaxDepth> edge_;  ///< the leaf first, the root at depth_ - 1
  unsigned depth_ = 0;
  std::vector<LeafRun> runs_;  ///< of the leaf on the edge

  PageNumber completed_page_ = kNoPage;
  std::uint32_t completed_count_ = 0;
  std::vector<LeafRun> completed_runs_;

  std::uint64_t entries_ = 0;
  std::uint64_t leaf_pages_ = 0;
  std::uint64_t branch_pages_ = 0;
};

}  // namespace forebay::lmdb
