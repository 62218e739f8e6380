// The part of PageAllocator that saves the free list into itself when a transaction commits.
#include <algorithm>
#include <functional>

#include "forebay/error.hpp"
#include "format/lmdb/provenance/page_allocator.hpp"
#include "format/lmdb/provenance/recipe.hpp"

namespace forebay::lmdb {
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
