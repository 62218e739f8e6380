#include "format/lmdb/read_cache.hpp"

#include <algorithm>
#include <utility>

#include "storage/page_cache.hpp"

namespace forebay::lmdb {

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
