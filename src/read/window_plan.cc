#include "read/window_plan.hpp"

#include <algorithm>

namespace forebay {
namespace {

/// Appends `piece`, joining it to the last one where both positions and entries go on.
void append(std::vector<Piece>& pieces, const Piece& piece) {
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    if (last.position + last.count == piece.position && last.entry + last.count == piece.entry) {
      last.count += piece.count;
      return;
    }
  }
  pieces.push_back(piece);
}

}  // namespace

WindowPlan::WindowPlan(StridedOrder order, std::vector<int> ranks, int roots,
                       std::uint64_t together)
    : order_(std::move(order)), ranks_(std::move(ranks)), roots_(roots), together_(together) {
  std::uint64_t next = 0;
  for (const int rank : ranks_) {
    first_entry_.push_back(next);
    next += order_.coalesce() * order_.share(rank);
  }
  first_entry_.push_back(next);
}

std::uint64_t WindowPlan::entry(int rank, std::uint64_t iteration, std::uint64_t position) const {
  const std::uint64_t share = order_.share(ranks_[static_cast<std::size_t>(rank)]);
  const std::uint64_t window = iteration / order_.coalesce();
  return window % together_ * first_entry_.back() + first_entry_[static_cast<std::size_t>(rank)] +
         iteration % order_.coalesce() * share + position;
}

std::uint64_t WindowPlan::root_begin(int root) const {
  return static_cast<std::uint64_t>(root) * entries() / static_cast<std::uint64_t>(roots_);
}

std::vector<Piece> WindowPlan::pieces(int root, const WindowPart& part) const {
  const std::uint64_t begin = root_begin(root);
  const std::uint64_t end = root_begin(root + 1);
  std::vector<Piece> pieces;
  for (std::uint64_t k = 0; k < together_; ++k) {
    const std::uint64_t before = k * order_.coalesce();
    if (before >= part.iterations || (k > 0 && part.phase == Phase::first)) break;
    const std::uint64_t iterations = std::min(order_.coalesce(), part.iterations - before);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::uint64_t share = order_.share(ranks_[rank]);
      const Run owned = order_.window_run(ranks_[rank], part.window * together_ + k);
      const std::uint64_t skipped = k == 0 && part.phase == Phase::rest ? share : 0;
      const std::uint64_t wanted = part.phase == Phase::first ? share : iterations * share;
      const std::uint64_t first = k * first_entry_.back() + first_entry_[rank];
      const std::uint64_t from = std::max(begin, first + skipped);
      const std::uint64_t to = std::min(end, first + std::min(wanted, owned.count));
      if (from < to) append(pieces, {owned.first + (from - first), to - from, from});
    }
  }
  return pieces;
}

}  // namespace forebay
