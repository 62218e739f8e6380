// Walking one B+-tree of a snapshot with a Cursor.
//
// The walk ends on any input: a tree is exactly as deep as its header says (leaves at the last
// level only, which rules out loops downwards), each step passes at least one record, and a walk
// that passes more records than the header counts is an error (which rules out loops sideways).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "format/lmdb/layout.hpp"
#include "format/lmdb/page_reader.hpp"

namespace forebay::lmdb {

// A position in a tree: plain numbers, so that it may be copied to any process that opened the
// same snapshot.
//
//   level 0         root page, slot          path[depth - 1] is the leaf: its slot is the record
//   level 1         branch page, slot
//   ...
//   level depth-1   leaf page, slot
//
// A Cursor is not trusted: Tree checks each page and slot that it takes from one.

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

/// A record in place.
struct Entry {
  std::span<const std::byte> key;
  std::span<const std::byte> value;
};

/// One thread at a time. All methods throw corrupt, io, or changed; a Cursor argument is then
/// unspecified, the tree stays usable.
class Tree {
 public:
  /// `pages` outlives the tree. `header` has passed impossible().
  Tree(PageReader& pages, const TreeHeader& header) : pages_(&pages), header_(header) {}

  const TreeHeader& header() const { return header_; }
  std::uint64_t entries() const { return header_.entries; }

  /// The first or last record; not valid() in an empty tree. The number of the last one is what
  /// the header says.
  Cursor first();
  Cursor last();
  /// A record about as far from the first one as `part` is from 0, and the last one from `of`. Its
  /// number is not known.
  Cursor about(std::uint64_t part, std::uint64_t of);
  /// Moves by one record. Returns false, and the cursor is not valid(), where there is none.
  bool next(Cursor& cursor);
  bool previous(Cursor& cursor);

  /// The first record whose key is not less than `key`; its sample number is not known.
  Cursor seek(std::span<const std::byte> key);

  /// Moves to record `sample` < entries(), leaf by leaf, from the nearest known position: the
  /// start, the cursor's own, or the end. The end is known once a walk has arrived there: the
  /// header alone may lie, and counting back from it would give wrong records without a sign.
  /// Returns the number of records passed over.
  std::uint64_t seek_record(Cursor& cursor, std::uint64_t sample);

  /// Moves `count` leaves ahead, to the first record there, over branch pages alone: the number of
  /// that record is not known. Returns by how many leaves it moved: fewer where the tree ends.
  std::uint64_t skip_leaves(Cursor& cursor, std::uint64_t count);
  /// How many leaves `to` is ahead of `from`, which is not behind it; over branch pages alone.
  std::uint64_t leaves_between(Cursor from, const Cursor& to);
  /// The leaf that the cursor is in, valid over the next few calls.
  Page leaf_page(const Cursor& cursor);

  /// Key and value, valid over the next few calls (see PageReader). The leaf's nodes are checked
  /// when it is first looked at. Throws unsupported when the record is a named database.
  Entry entry(const Cursor& cursor);
  /// The node only: for values whose bytes are not wanted.
  Node node(const Cursor& cursor);

  /// Throws corrupt unless the cursor, counted from the start, is on the last record of the tree.
  void check_is_last(const Cursor& cursor);

 private:
  Page page_at(const Cursor& cursor, unsigned level);
  /// Goes down by first or last children from the page at `level`, and looks at those before `end`.
  void descend(Cursor& cursor, unsigned level, unsigned end, bool to_last);
  bool next_leaf(Cursor& cursor) { return next_page(cursor, header_.depth - 1); }
  /// Moves to the first slot of the next page at `level`.
  bool next_page(Cursor& cursor, unsigned level);
  bool previous_leaf(Cursor& cursor);
  void forward(Cursor& cursor, std::uint64_t count);
  void backward(Cursor& cursor, std::uint64_t count);
  void count_move(Cursor& cursor, bool ahead);
  unsigned lower_bound(const Page& page, std::span<const std::byte> key, unsigned from) const;

  PageReader* pages_;
  TreeHeader header_;
  PageNumber checked_leaf_ = kNoPage;
  bool end_known_ = false;  ///< a walk found as many records as the header counts
};

}  // namespace forebay::lmdb
