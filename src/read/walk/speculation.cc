#include "read/walk/speculation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/read_watch.hpp"
#include "format/lmdb/layout.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

// Pages further apart than this do not belong to the same run: LMDB puts a record now and then
// into pages that it has freed, megabytes away.
constexpr std::uint64_t kFarPages = 64;
// Places to remember; a place every few windows is as good as one a window.
constexpr std::size_t kMostPlaces = 4096;
// A part may begin and end in the middle of a leaf, and a branch page may lie in it that no part
// has had so far.
constexpr std::uint64_t kSlackPages = 1;
constexpr std::size_t kTouchBytes = std::size_t{1} << 20;
constexpr std::size_t kSystemPage = 4096;

/// The run of neighbouring ranges that holds most of the pages.
PageRange main_run(std::span<const PageRange> used) {
  std::vector<PageRange> sorted(used.begin(), used.end());
  std::ranges::sort(sorted, {}, &PageRange::first);
  PageRange best;
  PageRange run;
  std::uint64_t pages = 0;
  std::uint64_t most = 0;
  for (const PageRange& range : sorted) {
    if (range.count == 0) continue;
    if (pages == 0 || range.first > run.end() + kFarPages) {
      run = range;
      pages = 0;
    }
    pages += range.count;
    run.count = std::max(run.end(), range.end()) - run.first;
    if (pages > most) {
      most = pages;
      best = run;
    }
  }
  return best;
}

std::uint64_t scaled_down(std::uint64_t records, double pages) {
  return static_cast<std::uint64_t>(std::floor(static_cast<double>(records) * pages));
}

std::uint64_t scaled_up(std::uint64_t records, double pages) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(records) * pages));
}

std::uint64_t touch_mapped(std::span<const std::byte> bytes, const std::function<bool()>& give_up) {
  // Volatile, so that the compiler reads what nobody uses.
  const volatile std::byte* const data = bytes.data();
  for (std::size_t i = 0; i < bytes.size(); i += kSystemPage) {
    if (i % kTouchBytes == 0 && give_up && give_up()) return i;
    note_mapped(bytes.data() + i);
    static_cast<void>(data[i]);
  }
  return bytes.size();
}

std::uint64_t touch_read(const File& file, std::uint64_t begin, std::uint64_t end,
                         const std::function<bool()>& give_up) {
  expect_reads(file, Reads::forward);
  std::vector<std::byte> scratch(std::min<std::uint64_t>(kTouchBytes, end - begin));
  for (std::uint64_t at = begin; at < end;) {
    if (give_up && give_up()) return at - begin;
    const auto piece = std::span(scratch).first(std::min<std::uint64_t>(scratch.size(), end - at));
    file.read(at, piece);
    at += piece.size();
  }
  return end - begin;
}

}  // namespace

double pages_of_record(std::uint64_t key_bytes, std::uint64_t value_bytes,
                       std::uint32_t page_size) {
  using namespace lmdb;
  const std::uint64_t room = page_size - kPageHeaderSize;
  constexpr std::uint64_t kSlot = 2;
  std::uint64_t node = kNodeHeaderSize + key_bytes + value_bytes;
  std::uint64_t run = 0;
  // A leaf holds two nodes at least; what is larger lies in a run of its own.
  if (node + kSlot > room / 2) {
    run = overflow_pages(value_bytes, page_size);
    node = kNodeHeaderSize + key_bytes + sizeof(PageNumber);
  }
  const std::uint64_t in_leaf = std::max<std::uint64_t>(1, room / (node + node % 2 + kSlot));
  return static_cast<double>(run) + 1.0 / static_cast<double>(in_leaf);
}

Speculation::Speculation(std::uint64_t first_page, std::uint64_t file_pages,
                         double pages_of_first_record)
    : file_pages_(file_pages), smallest_(pages_of_first_record), largest_(pages_of_first_record) {
  know(0, first_page);
}

void Speculation::know(std::uint64_t sample, std::uint64_t page) {
  if (places_.size() >= kMostPlaces && !places_.contains(sample)) {
    // Every second one goes: later parts of the file must be known as well.
    bool drop = false;
    std::erase_if(places_,
                  [&drop](const auto& place) { return (drop = !drop) && place.first != 0; });
  }
  places_[sample] = page;
}

PageRange Speculation::guess(std::uint64_t sample, std::uint64_t count) const {
  const auto [known, page] = *std::prev(places_.upper_bound(sample));
  const std::uint64_t gap = sample - known;
  const std::uint64_t slack = learnt_ ? kSlackPages : 0;
  const std::uint64_t begin = std::min(page + scaled_down(gap, smallest_), file_pages_);
  const std::uint64_t end = std::min(page + scaled_up(gap + count, largest_) + slack, file_pages_);
  const std::uint64_t first = begin >= slack ? begin - slack : 0;
  return {.first = first, .count = std::max(end, first) - first};
}

void Speculation::learn(std::uint64_t sample, std::uint64_t count,
                        std::span<const PageRange> used) {
  const PageRange run = main_run(used);
  if (count == 0 || run.count == 0) return;
  const double pages = static_cast<double>(run.count) / static_cast<double>(count);
  smallest_ = learnt_ ? std::min(smallest_, pages) : pages;
  largest_ = learnt_ ? std::max(largest_, pages) : pages;
  learnt_ = true;
  know(sample, run.first);
  // The last leaf may hold records of the part that follows.
  know(sample + count, run.end() - 1);
}

SpeculationFigures compare(const PageRange& guess, std::span<const PageRange> used) {
  std::uint64_t used_pages = 0;
  std::uint64_t both = 0;
  for (const PageRange& range : used) {
    used_pages += range.count;
    const std::uint64_t begin = std::max(guess.first, range.first);
    const std::uint64_t end = std::min(guess.end(), range.end());
    if (begin < end) both += end - begin;
  }
  return {.guessed = guess.count, .missed = used_pages - both, .redundant = guess.count - both};
}

std::uint64_t touch(const File& file, const PageRange& pages, std::uint32_t page_size,
                    const std::function<bool()>& give_up) {
  const std::span<const std::byte> map = file.map();
  const std::uint64_t size = map.empty() ? file.size() : map.size();
  const std::uint64_t file_pages = size / page_size + (size % page_size != 0 ? 1 : 0);
  if (pages.first >= file_pages || pages.count == 0) return 0;
  const std::uint64_t count = std::min(pages.count, file_pages - pages.first);
  const std::uint64_t begin = pages.first * page_size;
  const std::uint64_t end = std::min((pages.first + count) * page_size, size);
  const std::uint64_t bytes = map.empty() ? touch_read(file, begin, end, give_up)
                                          : touch_mapped(map.subspan(begin, end - begin), give_up);
  file.check();
  return bytes / page_size + (bytes % page_size != 0 ? 1 : 0);
}

}  // namespace forebay
