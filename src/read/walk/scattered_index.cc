#include "read/walk/scattered_index.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format/lmdb/known_leaves.hpp"
#include "read/piece_reader.hpp"

namespace forebay {

ScatteredIndex::ScatteredIndex(lmdb::Database& database, std::shared_ptr<const RootMap> map,
                               const std::shared_ptr<Communicator>& roots,
                               std::chrono::milliseconds limit, GiveUp give_up)
    : database_(database),
      facts_(lmdb::facts_of(database)),
      map_(std::move(map)),
      me_(roots->rank()),
      roots_(roots->size()),
      link_(roots, limit),
      give_up_(std::move(give_up)) {}

void ScatteredIndex::prepare(const WindowPart& part) {
  const std::uint64_t step = step_++;
  if (me_ == 0) {
    std::vector<LocatedPiece> mine;
    for (int root = 0; root < roots_; ++root) {
      auto pieces = locate(root, part);
      if (root == 0) {
        mine = std::move(pieces);
      } else {
        link_.send(root, step, pieces);
      }
    }
    return adopt(mine);
  }
  auto pieces = link_.receive(0, step, LocateLimits::of(database_), give_up_);
  if (link_.sender_has_left()) pieces = locate(me_, part);
  if (!pieces) throw Error(ErrorKind::cancelled, "the wait for the root that seeks was given up");
  adopt(*pieces);
}

std::vector<LocatedPiece> ScatteredIndex::locate(int root, const WindowPart& part) {
  const auto runs = sample_ranges(map_->order(), map_->pieces(root, part));
  return walk_pieces(database_, cursor_, runs);
}

void ScatteredIndex::adopt(const std::vector<LocatedPiece>& pieces) {
  auto leaves = std::make_unique<lmdb::KnownLeaves>();
  lmdb::TreeFacts facts = facts_;
  facts.entries = 0;
  facts.leaf_pages = 0;
  stretches_.clear();
  for (const LocatedPiece& piece : pieces) {
    if (piece.count == 0) continue;
    stretches_.push_back(
        {.first = piece.first_sample,
         .count = piece.count,
         .local = facts.entries + (piece.first_sample - piece.leaves.front().first_sample)});
    for (const LocatedLeaf& leaf : piece.leaves) {
      leaves->add(leaf.layout());
      facts.entries += leaf.records;
      ++facts.leaf_pages;
    }
  }
  std::ranges::sort(stretches_, {}, &Stretch::first);
  small_.reset();  // before its memory
  memory_.assign(lmdb::required_bytes(*leaves, facts), std::byte{0});
  small_ = std::make_unique<lmdb::LeafIndex>(std::move(leaves), facts, database_.pages(),
                                             lmdb::IndexMemory{.bytes = memory_});
}

/// The number in the small index of sample `first`, when all `count` are there.
std::uint64_t ScatteredIndex::local(std::uint64_t first, std::uint64_t count) const {
  const auto after = std::ranges::upper_bound(stretches_, first, {}, &Stretch::first);
  if (after != stretches_.begin()) {
    const Stretch& stretch = *std::prev(after);
    const std::uint64_t inside = first - stretch.first;
    if (inside <= stretch.count && count <= stretch.count - inside) return stretch.local + inside;
  }
  throw IndexMismatch(ErrorKind::communication,
                      fmt::format("root 0 has not located samples {} to {}", first, first + count),
                      "this is a fault of Forebay: please report it", {.file = facts_.file});
}

void ScatteredIndex::extents(std::uint64_t first, std::uint64_t count,
                             std::vector<FileExtent>& out) {
  if (count > 0) small_->extents(local(first, count), count, out);
}

void ScatteredIndex::unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
                            const RecordSink& sink) {
  if (count == 0) return;
  const std::uint64_t from = local(first, count);
  small_->unpack(from, count, bytes, [&](const Record& record) {
    sink({.sample = first + (record.sample - from), .key = record.key, .value = record.value});
  });
}

std::uint64_t ScatteredIndex::memory_bytes() const {
  return memory_.size() + (small_ ? small_->producer().memory_bytes() : 0);
}

}  // namespace forebay
