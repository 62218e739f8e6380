#include "read/walk/speculation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/read_watch.hpp"
#include "forebay/error.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

// As many gaps as tell how far their means are apart, and so few that what was uneven is forgotten
// within an epoch.
constexpr std::size_t kRecentGaps = 8;
constexpr std::uint64_t kAllSlots = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kTouchBytes = std::size_t{1} << 20;
constexpr std::size_t kSystemPage = 4096;

/// Number of the record that begins the leaf of `cursor`.
std::uint64_t begin_of_leaf(const lmdb::Cursor& cursor) {
  return cursor.sample - std::min(cursor.sample, cursor.leaf().slot);
}

std::uint64_t whole(double number) { return static_cast<std::uint64_t>(number); }

/// Pages that both have.
std::uint64_t common_pages(std::span<const PageRange> a, std::span<const PageRange> b) {
  std::uint64_t pages = 0;
  for (auto left = a.begin(), right = b.begin(); left != a.end() && right != b.end();) {
    const std::uint64_t begin = std::max(left->first, right->first);
    const std::uint64_t end = std::min(left->end(), right->end());
    if (begin < end) pages += end - begin;
    left->end() < right->end() ? ++left : ++right;
  }
  return pages;
}

std::uint64_t page_count(std::span<const PageRange> ranges) {
  std::uint64_t pages = 0;
  for (const PageRange& range : ranges) pages += range.count;
  return pages;
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

std::vector<PageRange> joined(std::vector<PageRange> ranges) {
  std::ranges::sort(ranges, {}, &PageRange::first);
  std::vector<PageRange> result;
  for (const PageRange& range : ranges) {
    if (result.empty() || range.first > result.back().end()) {
      result.push_back(range);
    } else {
      PageRange& last = result.back();
      last.count = std::max(last.end(), range.end()) - last.first;
    }
  }
  return result;
}

SpeculationFigures compare(std::span<const PageRange> guess, std::span<const PageRange> used) {
  const std::uint64_t guessed = page_count(guess);
  const std::uint64_t both = common_pages(guess, used);
  return {.guessed = guessed, .missed = page_count(used) - both, .redundant = guessed - both};
}

Speculation::Speculation(lmdb::Database& database)
    : database_(database), first_(database.tree().first()), known_(first_) {
  if (first_.valid()) fewest_ = most_ = database.tree().leaf_page(first_).count();
}

/// Behind the end of the circular data set, the first record is nearer than the last part.
const lmdb::Cursor& Speculation::known_before(std::uint64_t sample) const {
  return known_.sample <= sample ? known_ : first_;
}

void Speculation::guess(std::uint64_t sample, std::uint64_t count, GuessedPages& pages) try {
  if (!first_.valid()) return;
  lmdb::Tree& tree = database_.tree();
  lmdb::Cursor cursor = known_before(sample);
  const auto begin = static_cast<double>(sample - begin_of_leaf(cursor));
  const double end = begin + static_cast<double>(count);
  const std::uint64_t first = whole(begin / most_);
  const std::uint64_t last = whole(end / fewest_);
  const std::uint64_t first_slot = whole(begin - static_cast<double>(first) * most_);
  const std::uint64_t end_slot = whole(std::ceil(end - static_cast<double>(last) * fewest_));
  tree.skip_leaves(cursor, first);
  for (std::uint64_t leaf = first; leaf <= last; ++leaf) {
    if (leaf > first && tree.skip_leaves(cursor, 1) == 0) break;
    add_leaf(cursor, leaf == first ? first_slot : 0, leaf == last ? end_slot : kAllSlots, pages);
  }
} catch (const Error& error) {
  if (error.kind() != ErrorKind::corrupt) throw;
}

/// With the values of its records [from, to).
void Speculation::add_leaf(const lmdb::Cursor& cursor, std::uint64_t from, std::uint64_t to,
                           GuessedPages& pages) {
  const lmdb::Page leaf = database_.tree().leaf_page(cursor);
  const std::uint64_t file_pages = database_.snapshot().file_pages();
  pages.leaves.push_back({.first = leaf.number(), .count = 1});
  for (std::uint64_t slot = from; slot < std::min<std::uint64_t>(to, leaf.count()); ++slot) {
    const lmdb::Node node = leaf.node(static_cast<unsigned>(slot));
    if (!node.is_overflow() || node.overflow_page() >= file_pages) continue;
    const std::uint64_t run = lmdb::overflow_pages(node.value_size, database_.page_size());
    pages.values.push_back(
        {.first = node.overflow_page(), .count = std::min(run, file_pages - node.overflow_page())});
  }
}

void Speculation::learn(const lmdb::Cursor& start, const lmdb::Cursor& last) {
  const lmdb::Cursor& from = known_before(start.sample);
  const std::uint64_t records = begin_of_leaf(start) - begin_of_leaf(from);
  const std::uint64_t leaves = database_.tree().leaves_between(from, start);
  known_ = last;
  // In a leaf that was known already there is nothing to learn; and a tree that lies may give
  // anything, but a leaf holds a record at least.
  if (leaves == 0 || leaves > records) return;
  means_.push_back(static_cast<double>(records) / static_cast<double>(leaves));
  if (means_.size() > kRecentGaps) means_.pop_front();
  const auto [fewest, most] = std::ranges::minmax(means_);
  fewest_ = fewest;
  most_ = most;
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
