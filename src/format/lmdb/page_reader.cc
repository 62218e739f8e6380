#include "format/lmdb/page_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/read_watch.hpp"
#include "storage/page_cache.hpp"

namespace forebay::lmdb {
namespace {

constexpr PageNumber kMaxPages = PageNumber{1} << 48;  ///< branch nodes have room for 48 bits

}  // namespace

PageReader::PageReader(std::shared_ptr<const Snapshot> snapshot)
    : snapshot_(std::move(snapshot)),
      page_size_(snapshot_->page_size()),
      available_pages_(snapshot_->file_pages()),
      map_(snapshot_->file().map()) {
  if (map_.empty()) {
    cache_.emplace(snapshot_->shared_file(), available_pages_ * page_size_);
  } else {
    available_pages_ = map_.size() / page_size_;
  }
}

Page PageReader::tree_page(PageNumber number) {
  if (number != last_tree_page_) {
    ++pages_;
    last_tree_page_ = number;
  }
  const Page page(bytes(number, 1, page_size_), number, *this);
  if (page.is_leaf()) tell(number, 1);
  return page;
}

PageHeader PageReader::overflow_header(PageNumber first, std::uint64_t size) {
  const PageHeader header = check_overflow(bytes(first, 1, kPageHeaderSize), first, size);
  tell(first, 1);
  return header;
}

PageHeader PageReader::check_overflow(std::span<const std::byte> run, PageNumber first,
                                      std::uint64_t size) const {
  const PageHeader header = decode_page_header(run);
  if (header.number != first) {
    damaged(first, fmt::format("the page calls itself page {}", header.number));
  }
  if ((header.flags & kPageTypeMask) != kPageOverflow) {
    damaged(first,
            fmt::format("page flags 0x{:x} are not those of an overflow page", header.flags));
  }
  if (header.run_length() < overflow_pages(size, page_size_)) {
    damaged(first, fmt::format("an overflow run of {} pages cannot hold {} bytes",
                               header.run_length(), size));
  }
  return header;
}

std::span<const std::byte> PageReader::value(PageNumber first, std::uint64_t size) {
  const std::uint64_t pages = overflow_pages(size, page_size_);
  // Fetched whole before its header is checked: one request instead of two.
  const auto run = bytes(first, pages, kPageHeaderSize + size);
  check_overflow(run, first, size);
  tell(first, pages);
  pages_ += pages;
  return run.subspan(kPageHeaderSize);
}

std::span<const std::byte> PageReader::bytes(PageNumber first, std::uint64_t pages,
                                             std::uint64_t size) {
  const PageNumber last = snapshot_->meta().last_page;
  if (first < kFirstTreePage || first > last || pages > last - first + 1) {
    damaged(first, fmt::format("{} pages from there leave the pages 2 to {}", pages, last));
  }
  if (first >= available_pages_ || pages > available_pages_ - first) {
    damaged(first, fmt::format("{} pages from there lie past the file's end of {} pages", pages,
                               available_pages_));
  }
  const std::uint64_t offset = first * page_size_;
  if (!cache_) {
    note_mapped(map_.data() + offset);
    return map_.subspan(offset, size);
  }
  if (size > ReadCache::kLargestRun) return cache_->large(offset, size);
  return cache_->fetch(offset, size);
}

PageCounters PageReader::counters() const {
  const PageCounters all = all_counters();
  return {all.requests - before_.requests, all.bytes - before_.bytes, all.pages - before_.pages};
}

PageCounters PageReader::all_counters() const {
  if (cache_) return {cache_->requests(), cache_->bytes(), pages_};
  return {0, pages_ * page_size_, pages_};
}

Error PageReader::explain(PageNumber page, const std::string& fault) const {
  snapshot_->file().check();     // throws: the mapping faulted, zeros were seen instead of bytes
  snapshot_->check_unchanged();  // throws: a writer recycled the page
  Where where{.file = snapshot_->file().path()};
  if (page < kMaxPages) where.offset = page * page_size_;
  return {ErrorKind::corrupt, fmt::format("page {}: {}", page, fault),
          "the file is damaged: restore it from a copy, or see 'forebay verify'", where};
}

ReadCache::ReadCache(std::shared_ptr<const File> file, std::uint64_t end)
    : file_(std::move(file)), end_(end) {}

std::span<const std::byte> ReadCache::fetch(std::uint64_t offset, std::size_t size) {
  Run* run = find(offset, size);
  if (run == nullptr) {
    const std::size_t length = length_of_run(offset, size);
    if (length > kSmallestRun) go_forward();
    run = &oldest();
    if (run->capacity < length) {
      run->bytes = std::make_unique_for_overwrite<std::byte[]>(length);
      run->capacity = length;
    }
    run->size = 0;  // holds nothing, should the read throw
    read(offset, {run->bytes.get(), length});
    run->offset = offset;
    run->size = length;
    last_ = static_cast<std::size_t>(run - runs_.data());
  }
  run->used_at = ++clock_;
  return {run->bytes.get() + (offset - run->offset), size};
}

std::span<const std::byte> ReadCache::large(std::uint64_t offset, std::size_t size) {
  if (large_capacity_ < size) {
    large_.reset();  // before the new one: two of them may be gigabytes
    large_capacity_ = 0;
    large_ = std::make_unique_for_overwrite<std::byte[]>(size);
    large_capacity_ = size;
  }
  go_forward();
  read(offset, {large_.get(), size});
  return {large_.get(), size};
}

void ReadCache::go_forward() {
  if (!std::exchange(forward_, true)) expect_reads(*file_, Reads::forward);
}

ReadCache::Run* ReadCache::find(std::uint64_t offset, std::size_t size) {
  if (runs_[last_].holds(offset, size)) return &runs_[last_];
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (!runs_[i].holds(offset, size)) continue;
    last_ = i;
    return &runs_[i];
  }
  return nullptr;
}

std::size_t ReadCache::length_of_run(std::uint64_t offset, std::size_t size) const {
  std::size_t length = kSmallestRun;
  for (const Run& run : runs_) {
    // A value that straddles the end of a run continues the sequence, too.
    const bool continues = run.size != 0 && offset >= run.offset &&
                           offset <= run.offset + run.size && offset + size > run.offset + run.size;
    if (continues) length = std::max(length, std::min(2 * run.size, kLargestRun));
  }
  length = std::max(length, size);
  return static_cast<std::size_t>(std::min<std::uint64_t>(length, end_ - offset));
}

ReadCache::Run& ReadCache::oldest() {
  return *std::min_element(runs_.begin(), runs_.end(),
                           [](const Run& a, const Run& b) { return a.used_at < b.used_at; });
}

void ReadCache::read(std::uint64_t offset, std::span<std::byte> out) {
  file_->read(offset, out);
  ++requests_;
  bytes_ += out.size();
}

}  // namespace forebay::lmdb
