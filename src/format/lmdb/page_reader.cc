#include "format/lmdb/page_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  return {bytes(number, 1, page_size_), number, *this};
}

PageHeader PageReader::overflow_header(PageNumber first, std::uint64_t size) {
  return check_overflow(bytes(first, 1, kPageHeaderSize), first, size);
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
  if (watch_) watch_(first, pages);
  const std::uint64_t offset = first * page_size_;
  if (!cache_) return map_.subspan(offset, size);
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

}  // namespace forebay::lmdb
