#include "format/lmdb/provenance/page_allocator.hpp"

#include <algorithm>
#include <functional>

#include "forebay/error.hpp"
#include "format/lmdb/provenance/recipe.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kTriesPerPage = 60;

/// More than one leaf of the free list can hold.
constexpr std::uint64_t kMaxFreePages = kMaxPageSize / sizeof(PageNumber);

void write_list(ByteWriter& out, const std::vector<PageNumber>& pages) {
  out.varint(pages.size());
  for (const PageNumber page : pages) out.varint(page);
}

std::vector<PageNumber> read_list(NumberReader& in) {
  std::vector<PageNumber> pages(in.get(0, kMaxFreePages, "the number of free pages"));
  for (PageNumber& page : pages) page = in.get(kFirstTreePage, kMaxPageNumber, "a free page");
  return pages;
}

std::vector<PageNumber> read_falling_list(NumberReader& in) {
  std::vector<PageNumber> pages = read_list(in);
  std::sort(pages.begin(), pages.end(), std::greater<>());
  return pages;
}

}  // namespace

void PageAllocator::begin() {
  ++transaction_;
  loaded_ = 0;
  exhausted_ = false;
  barren_ = 0;
}

PageNumber PageAllocator::search(std::uint32_t count) {
  for (std::uint64_t tries = kTriesPerPage * count;; --tries) {
    while (head_.size() < count && load_record()) {
    }
    if (head_.size() < count || (exhausted_ && barren_ == count)) break;
    if (const auto page = take_run(count)) return *page;
    if (tries == 0 || !load_record()) break;
  }
  return grow(count);
}

std::optional<PageNumber> PageAllocator::take_run(std::uint32_t count) {
  for (std::size_t end = head_.size(); end >= count; --end) {
    const PageNumber lowest = head_[end - 1];
    if (head_[end - count] != lowest + count - 1) continue;
    const auto last = head_.begin() + static_cast<std::ptrdiff_t>(end);
    head_.erase(last - count, last);
    return lowest;
  }
  barren_ = count;
  return {};
}

bool PageAllocator::load_record() {
  // Readers may hold the state before this transaction; nothing holds an older one.
  const auto next = std::upper_bound(records_.begin(), records_.end(), loaded_,
                                     [](std::uint64_t id, const Record& r) { return id < r.id; });
  if (next == records_.end() || next->id + 1 >= transaction_) {
    exhausted_ = true;
    return false;
  }
  loaded_ = next->id;
  const auto middle = static_cast<std::ptrdiff_t>(head_.size());
  head_.insert(head_.end(), next->pages.begin(), next->pages.end());
  std::inplace_merge(head_.begin(), head_.begin() + middle, head_.end(), std::greater<>());
  barren_ = 0;
  return true;
}

TreeHeader PageAllocator::free_tree() const {
  TreeHeader header;
  header.entries = records_.size();
  header.root = free_leaf_;
  header.depth = header.empty() ? 0 : 1;
  header.leaf_pages = header.depth;
  return header;
}

void PageAllocator::write(ByteWriter& out) const {
  out.varint(transaction_);
  out.varint(next_page_);
  out.varint(free_leaf_ + 1);  // kNoPage becomes 0
  out.varint(free_leaf_dirty_ ? 1 : 0);
  out.varint(records_.size());
  for (const Record& record : records_) {
    out.varint(record.id);
    out.varint(record.room);
    write_list(out, record.pages);
  }
  write_list(out, head_);
  out.varint(loaded_);
  write_list(out, freed_);
}

PageAllocator PageAllocator::read(NumberReader& in, std::uint32_t page_size) {
  PageAllocator pages(page_size);
  pages.transaction_ = in.get(0, kMaxPageNumber, "the transaction");
  pages.next_page_ = in.get(kFirstTreePage, kMaxPageNumber, "the end of the file");
  pages.free_leaf_ = in.get(0, kMaxPageNumber, "the page of the free list") - 1;
  pages.free_leaf_dirty_ = in.get_flag("the state of the free list");
  pages.records_.resize(in.get(0, kMaxFreePages, "the number of free-list records"));
  std::uint64_t next_id = 1;
  for (Record& record : pages.records_) {
    record.id = in.get(next_id, kMaxPageNumber, "the key of a free-list record");
    record.room = in.get(0, kMaxFreePages, "the room of a free-list record");
    record.pages = read_falling_list(in);
    next_id = record.id + 1;
  }
  pages.head_ = read_falling_list(in);
  pages.loaded_ = in.get(0, kMaxPageNumber, "the free-list record loaded last");
  pages.freed_ = read_list(in);
  pages.check_free_leaf();
  return pages;
}

// The part of PageAllocator that saves the free list into itself when a transaction commits.

namespace {

/// A record of the free list: slot, header, key, and a list that starts with its length.
constexpr std::uint64_t kEmptyRecordBytes = 2 + kNodeHeaderSize + 8 + 8;

/// The fixed point is found in a few rounds; only forged checkpoints could go on.
constexpr int kMaxRounds = 1000;

[[noreturn]] void refuse(const char* fault) {
  throw Error(ErrorKind::corrupt, std::string("replay: ") + fault,
              "make the provenance of the data set anew");
}

}  // namespace

void PageAllocator::commit() {
  Saving saving;
  if (loaded_ != 0) touch_free_leaf();
  for (int round = 0;; ++round) {
    if (round == kMaxRounds) refuse("the free list cannot be saved");
    drop_loaded_records(saving);
    if (saving.saved < freed_.size()) {
      save_freed_pages(saving);
    } else if (!reserve_room_for_head(saving)) {
      break;
    }
  }
  fill_reserved_room();
  head_.clear();
  freed_.clear();
  free_leaf_dirty_ = false;
}

void PageAllocator::touch_free_leaf() {
  if (free_leaf_ == kNoPage || free_leaf_dirty_) return;
  const PageNumber copy = allocate(1);
  release(free_leaf_);
  free_leaf_ = copy;
  free_leaf_dirty_ = true;
}

PageAllocator::Record& PageAllocator::put_record(std::uint64_t id, std::uint64_t room) {
  touch_free_leaf();
  if (free_leaf_ == kNoPage) {
    free_leaf_ = allocate(1);
    free_leaf_dirty_ = true;
  }
  auto place = std::lower_bound(records_.begin(), records_.end(), id,
                                [](const Record& r, std::uint64_t key) { return r.id < key; });
  if (place == records_.end() || place->id != id) place = records_.insert(place, Record{id, 0, {}});
  place->room = room;
  place->pages.clear();
  check_free_leaf();
  return *place;
}

void PageAllocator::drop_first_record() {
  touch_free_leaf();
  records_.erase(records_.begin());
  if (!records_.empty()) return;
  release(free_leaf_);
  free_leaf_ = kNoPage;
  free_leaf_dirty_ = false;
}

void PageAllocator::drop_loaded_records(Saving& saving) {
  while (saving.dropped < loaded_) {
    if (records_.empty() || free_leaf_ == kNoPage) refuse("a record of the free list is missing");
    saving.dropped = saving.head_id = records_.front().id;
    saving.total_room = saving.head_room = 0;
    drop_first_record();
  }
}

void PageAllocator::save_freed_pages(Saving& saving) {
  if (saving.saved == 0) touch_free_leaf();
  Record* record = nullptr;
  do {
    saving.saved = freed_.size();
    record = &put_record(transaction_, saving.saved);
  } while (saving.saved < freed_.size());
  record->pages = freed_;
  std::sort(record->pages.begin(), record->pages.end(), std::greater<>());
}

bool PageAllocator::reserve_room_for_head(Saving& saving) {
  // Numbers that fill the first page of an overflow run. Larger lists are spread over several
  // records; the lists here stay far below.
  const auto one_page = static_cast<std::int64_t>(page_room(page_size_) / sizeof(PageNumber) - 1);
  const auto wanted = static_cast<std::int64_t>(head_.size());
  if (saving.total_room == wanted) return false;
  if (saving.total_room > wanted && --saving.spare_rounds < 0) return false;
  saving.total_room -= saving.head_room;
  saving.head_room = std::max<std::int64_t>(wanted - saving.total_room, 0);
  if (saving.head_room > one_page) refuse("the free list outgrows a page");
  put_record(saving.head_id, static_cast<std::uint64_t>(saving.head_room));
  saving.total_room += saving.head_room;
  return true;
}

void PageAllocator::fill_reserved_room() {
  auto rest = head_.end();
  for (Record& record : records_) {
    if (rest == head_.begin()) return;
    record.room = std::min(record.room, static_cast<std::uint64_t>(rest - head_.begin()));
    const auto first = rest - static_cast<std::ptrdiff_t>(record.room);
    record.pages.assign(first, rest);
    rest = first;
  }
}

void PageAllocator::check_free_leaf() const {
  std::uint64_t used = 0;
  for (const Record& record : records_) {
    used += kEmptyRecordBytes + 8 * std::max<std::uint64_t>(record.room, record.pages.size());
  }
  if (used > page_room(page_size_)) refuse("the free list outgrows a page");
}

}  // namespace forebay::lmdb
