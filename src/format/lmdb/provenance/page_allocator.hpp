// Where liblmdb takes page numbers from, and how it remembers those that it may take again.
//
// Nothing that is committed is ever overwritten: a page that has to change is copied to a new one
// (it is "touched"; the copy is "dirty" and may change until the commit), and the old one is freed.
// Readers of the last two states may still look at it, so it is set aside:
//
//   freed in transaction T  --commit T-->  record T of the free list  --T + 2 or later-->  head
//
// The free list is a tree of its own. The record of key T lists the pages freed by T. A
// transaction loads records into its `head` (a sorted list of page numbers) in order of their
// keys, only when it wants pages, and only those that are older than the state before it.
//
// One page      the lowest number in the head; an empty head loads the next record first.
// A run         the lowest run of consecutive numbers in the head; without one, the next record is
//               loaded and the search repeated, up to 60 failures a page. Runs are long and the
//               free list of an insert-only build is short, so they rarely come from there.
// Otherwise     the file grows at its end.
//
// At commit the free list is saved into itself, which costs pages in turn, so it repeats until
// nothing changes any more:
//
//   1. records that were loaded are deleted, first of all records the oldest
//   2. the pages freed by this transaction are written as its own record, again whenever more
//      were freed meanwhile (the tree's own page is touched as well)
//   3. room for what is left in the head is reserved in a record with the key of the newest loaded
//      one, again whenever the head has changed
//
// and only then are the numbers left in the head written into that room.
//
// In a build that only inserts in key order, each transaction frees one path of pages and takes at
// least as many: the free list never grows beyond one leaf page, so its tree is that page or
// nothing. "Loose" pages (dirty ones given back by a merge) need deletions and never occur here,
// nor do overflow pages that are freed. Spilling dirty pages early does not move them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/byte_stream.hpp"
#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

/// Branches store page numbers of 48 bits.
inline constexpr PageNumber kMaxPageNumber = (PageNumber{1} << 48) - 1;

/// A value. One thread at a time. Methods that allocate throw corrupt when the free list would
/// need a second page, which no build of the recipe's kind makes.
class PageAllocator {
 public:
  /// An empty file; no transaction is open.
  explicit PageAllocator(std::uint32_t page_size) : page_size_(page_size) {}

  void begin();
  /// `count` consecutive pages: the number of the first.
  PageNumber allocate(std::uint32_t count) {
    if (exhausted_ && head_.size() < count) return grow(count);
    return search(count);
  }
  /// A page of an earlier transaction that is not used from this one on.
  void release(PageNumber page) { freed_.push_back(page); }
  void commit();

  std::uint64_t transaction() const { return transaction_; }
  PageNumber last_page() const { return next_page_ - 1; }
  /// Of the free list; `flags` and `pad` are 0.
  TreeHeader free_tree() const;

  void write(ByteWriter& out) const;
  /// What write() wrote. Throws corrupt.
  static PageAllocator read(NumberReader& in, std::uint32_t page_size);

 private:
  /// A record of the free list. `pages` fall, as in the file.
  struct Record {
    std::uint64_t id = 0;
    std::uint64_t room = 0;  ///< numbers that its value has bytes for
    std::vector<PageNumber> pages;
  };
  /// Progress of saving the free list.
  struct Saving {
    std::uint64_t dropped = 0;  ///< key of the last record deleted
    std::uint64_t saved = 0;    ///< freed pages that this transaction's record has room for
    std::uint64_t head_id = 0;  ///< of the record that takes the head
    std::int64_t head_room = 0;
    std::int64_t total_room = 0;
    int spare_rounds = 1;  ///< that may leave more room than needed
  };

  PageNumber grow(std::uint64_t count) {
    const PageNumber page = next_page_;
    next_page_ += count;
    return page;
  }
  PageNumber search(std::uint32_t count);
  std::optional<PageNumber> take_run(std::uint32_t count);
  bool load_record();

  void touch_free_leaf();
  Record& put_record(std::uint64_t id, std::uint64_t room);
  void drop_first_record();
  void drop_loaded_records(Saving& saving);
  void save_freed_pages(Saving& saving);
  bool reserve_room_for_head(Saving& saving);
  void fill_reserved_room();
  void check_free_leaf() const;

  std::uint32_t page_size_;
  std::uint64_t transaction_ = 0;
  PageNumber next_page_ = kFirstTreePage;

  PageNumber free_leaf_ = kNoPage;
  bool free_leaf_dirty_ = false;
  std::vector<Record> records_;  ///< in order of their ids

  // Of the open transaction.
  std::vector<PageNumber> head_;  ///< falling: the lowest comes last
  std::uint64_t loaded_ = 0;      ///< id of the record loaded last; 0: none
  bool exhausted_ = false;        ///< no further record may be loaded
  std::uint32_t barren_ = 0;      ///< the head holds no run of that many pages; 0: not known
  std::vector<PageNumber> freed_;
};

}  // namespace forebay::lmdb
