#include "read/walk/extent_scatter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/messages.hpp"
#include "forebay/error.hpp"
#include "read/reading_list.hpp"

namespace forebay {
namespace {

using lmdb::Cursor;
using lmdb::PageNumber;

/// Instead of the number of a window.
constexpr std::uint64_t kFarewell = ~std::uint64_t{0};

LocatedLeaf leaf_at(lmdb::Database& database, Cursor cursor) {
  lmdb::Tree& tree = database.tree();
  const PageNumber page = cursor.leaf().page;
  LocatedLeaf leaf{.page = page,
                   .records = database.pages().tree_page(page).count(),
                   .first_sample = cursor.sample - cursor.leaf().slot,
                   .runs = {}};
  for (std::uint32_t slot = 0; slot < leaf.records; ++slot) {
    cursor.leaf().slot = slot;
    const lmdb::Node node = tree.node(cursor);
    if ((node.flags & (lmdb::kNodeTree | lmdb::kNodeDuplicates)) != 0)
      tree.entry(cursor);  // throws
    if (!node.is_overflow()) continue;
    const std::uint64_t pages = lmdb::overflow_pages(node.value_size, database.page_size());
    leaf.runs.push_back({.page = node.overflow_page(),
                         .pages = static_cast<std::uint32_t>(pages),
                         .slot = static_cast<std::uint16_t>(slot)});
  }
  return leaf;
}

LocatedPiece walk_piece(lmdb::Database& database, Cursor& cursor, const SampleRange& run) {
  LocatedPiece piece{.first_sample = run.first, .count = run.count, .leaves = {}};
  const std::uint64_t end = run.first + run.count;
  for (std::uint64_t sample = run.first; sample < end;) {
    database.tree().seek_record(cursor, sample);
    piece.leaves.push_back(leaf_at(database, cursor));
    sample = piece.leaves.back().first_sample + piece.leaves.back().records;
  }
  return piece;
}

}  // namespace

LocateLimits LocateLimits::of(const lmdb::Database& database) {
  return {.entries = database.entries(),
          .last_page = database.last_page(),
          .page_size = database.page_size()};
}

std::vector<SampleRange> sample_ranges(const StridedOrder& order, std::span<const Piece> pieces) {
  std::vector<SampleRange> cut;
  for (const SampleRun& run : sample_runs(order, pieces)) {
    cut.push_back({.first = run.sample, .count = run.count});
  }
  std::ranges::sort(cut, {}, &SampleRange::first);
  std::vector<SampleRange> joined;
  for (const SampleRange& range : cut) {
    if (joined.empty() || joined.back().first + joined.back().count < range.first) {
      joined.push_back(range);
      continue;
    }
    SampleRange& last = joined.back();
    last.count = std::max(last.first + last.count, range.first + range.count) - last.first;
  }
  return joined;
}

std::vector<LocatedPiece> walk_pieces(lmdb::Database& database, Cursor& cursor,
                                      std::span<const SampleRange> runs) {
  std::vector<LocatedPiece> pieces;
  for (const SampleRange& run : runs) pieces.push_back(walk_piece(database, cursor, run));
  return pieces;
}

void ExtentLink::send(int to, std::uint64_t window, std::span<const LocatedPiece> pieces) {
  roots_->send(to, encode(window, pieces));
}

void ExtentLink::leave() {
  for (int root = 0; root < roots_->size(); ++root) {
    if (root != roots_->rank()) send(root, kFarewell, {});
  }
}

std::optional<std::vector<LocatedPiece>> ExtentLink::receive(int from, std::uint64_t window,
                                                             const LocateLimits& limits,
                                                             const GiveUp& give_up) {
  if (sender_has_left_) return std::nullopt;
  const auto bytes = forebay::receive(
      *roots_, from, limit_, give_up,
      fmt::format("root {} to tell where the records of window {} lie", from, window));
  if (!bytes) return std::nullopt;
  LocatedWindow located = decode(*bytes, limits);
  if (located.window == kFarewell) {
    sender_has_left_ = true;
    return std::nullopt;
  }
  if (located.window != window) {
    throw Error(
        ErrorKind::communication,
        fmt::format("root {} has located window {} instead of {}", from, located.window, window),
        "this is a fault of Forebay: please report it");
  }
  return std::move(located.pieces);
}

}  // namespace forebay
