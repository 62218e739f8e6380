#include "format/lmdb/provenance/page_allocator.hpp"

#include <algorithm>
#include <functional>

namespace forebay::lmdb {
namespace {

constexpr std::uint64_t kTriesPerPage = 60;

/// More than one leaf of the free list can hold.
constexpr std::uint64_t kMaxFreePages = kMaxPageSize / sizeof(PageNumber);

void write_list(NumberWriter& out, const std::vector<PageNumber>& pages) {
  out.put(pages.size());
  for (const PageNumber page : pages) out.put(page);
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

void PageAllocator::write(NumberWriter& out) const {
  out.put(transaction_);
  out.put(next_page_);
  out.put(free_leaf_ + 1);  // kNoPage becomes 0
  out.put(free_leaf_dirty_ ? 1 : 0);
  out.put(records_.size());
  for (const Record& record : records_) {
    out.put(record.id);
    out.put(record.room);
    write_list(out, record.pages);
  }
  write_list(out, head_);
  out.put(loaded_);
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

}  // namespace forebay::lmdb
