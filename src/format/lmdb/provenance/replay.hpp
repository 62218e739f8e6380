// Where liblmdb put every leaf and overflow page of a database: computed, not read.
//
// The file-opening comments tell the rules in the order in which a put meets them:
// record_tree.hpp the tree that holds the records, page_allocator.hpp where page numbers come from.
// Replay joins them: it puts record after record and commits where the recipe says.
//
//   begin -> [ touch the path -> split -> place the value ] x commit_every -> commit -> begin ...
//
// A leaf is given out as soon as it is left behind at the right edge: from then on no insertion
// changes or moves it. So the state between two leaves is small: the page numbers of one path, two
// records, and a few dozen free pages. A checkpoint is that state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/page_allocator.hpp"
#include "format/lmdb/provenance/recipe.hpp"
#include "format/lmdb/provenance/record_tree.hpp"

namespace forebay::lmdb {

// The record of a named database in the main tree: one leaf page that has to be rewritten in every
// transaction that changes the named tree, because it holds that tree's root.
//
// liblmdb touches this leaf before the first put of a transaction, so that its page number comes
// before all others; but the first put into an empty tree does not, and then the commit does.

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

  void write(ByteWriter& out) const;
  static NameRecord read(NumberReader& in);

 private:
  void touch(PageAllocator& pages);

  PageNumber leaf_ = kNoPage;
  bool dirty_ = false;
  bool tree_changed_ = false;  ///< in this transaction
};

/// What the newest meta page says after the last commit. `flags` and `pad` of the headers are not
/// replayed and stay 0.
struct ReplayTotals {
  PageNumber last_page = 0;
  std::uint64_t transaction = 0;
  TreeHeader data;  ///< of the tree with the records
  TreeHeader main;  ///< the same, or of the tree that names it
  TreeHeader free;  ///< of the free list
  bool operator==(const ReplayTotals&) const = default;
};

inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{64} << 10;

/// A value: a copy goes on independently. One thread at a time. Hundreds of millions of records a
/// second where commits are rare, ten million where every record is committed.
class Replay {
 public:
  /// Starts with an empty file. Throws as validate().
  explicit Replay(const Recipe& recipe);
  /// Goes on from `checkpoint`, which a replay of the same recipe made. Throws corrupt on bytes
  /// that cannot be one; a forged one gives wrong leaves or throws later, in bounded time.
  Replay(const Recipe& recipe, std::span<const std::byte> checkpoint);

  /// The next leaf in key order, in its final place. False after the last one.
  /// `leaf.runs` is valid until the next call. Throws corrupt where the recipe is one that no
  /// database can have been built by.
  bool next(LeafLayout& leaf);

  /// Records of the leaves given out so far: the number of the first record of the next leaf.
  std::uint64_t position() const { return position_; }
  /// State after the leaf given out last. At most kMaxCheckpointBytes; some hundred
  /// except at the end.
  std::vector<std::byte> checkpoint() const;
  /// After next() returned false. Throws usage before.
  ReplayTotals totals() const;

  const Recipe& recipe() const { return recipe_; }
  /// Records put so far: some more than position(), those of the leaf that is not complete.
  std::uint64_t records_put() const { return put_; }
  /// Other commits from here on, as the fields of the recipe say them. For a search: throws usage
  /// where the new commits up to here would not be those that were made, and as validate().
  void set_commits(std::uint64_t first_commit, std::uint64_t commit_every);

 private:
  void put_some();
  void commit();

  Recipe recipe_;
  PageAllocator pages_;
  RecordTree tree_;
  NameRecord name_;
  std::uint64_t put_ = 0;           ///< records put so far
  std::uint64_t until_commit_ = 0;  ///< records until the next commit
  std::uint64_t position_ = 0;
  bool ended_ = false;
};

}  // namespace forebay::lmdb
