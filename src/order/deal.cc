#include "order/deal.hpp"

#include <algorithm>
#include <utility>

namespace forebay {
namespace {

/// How much of `value` lies in the `count` numbers from `from` on.
std::uint64_t part_in(std::uint64_t value, std::uint64_t from, std::uint64_t count) {
  return value <= from ? 0 : std::min(value - from, count);
}

}  // namespace

Deal::Deal(std::uint64_t length, int ranks, std::uint64_t batch, std::vector<std::uint64_t> begins)
    : length_(length),
      runs_{batch, ranks, length / batch, length % batch},
      begins_(std::move(begins)),
      most_iterations_(runs_.full + (runs_.tail > 0 ? 1 : 0)),
      least_iterations_(runs_.full) {}

Deal Deal::by_batch(std::uint64_t length, int ranks, std::uint64_t batch) {
  return {length, ranks, batch, {}};
}

Deal Deal::by_runs(std::vector<std::uint64_t> begins, std::uint64_t batch) {
  const std::uint64_t length = begins.back();
  const auto ranks = static_cast<int>(begins.size() - 1);
  Deal deal(length, ranks, batch, std::move(begins));
  deal.most_iterations_ = 0;
  deal.least_iterations_ = UINT64_MAX;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint64_t draws = deal.draws(rank), share = deal.share(rank);
    deal.most_iterations_ = std::max(deal.most_iterations_, (draws + share - 1) / share);
    deal.least_iterations_ = std::min(deal.least_iterations_, draws / share);
  }
  return deal;
}

Deal Deal::by_fair_runs(std::uint64_t length, int ranks, std::uint64_t batch) {
  std::vector<std::uint64_t> begins;
  begins.reserve(static_cast<std::size_t>(ranks) + 1);
  const RankRuns runs{batch, ranks, length / batch, length % batch};
  for (int rank = 0; rank <= ranks; ++rank) begins.push_back(runs.begin(rank));
  return by_runs(std::move(begins), batch);
}

std::uint64_t Deal::draws_before(int rank) const {
  if (in_runs()) return begins_[static_cast<std::size_t>(rank)];
  return runs_.begin(rank);
}

std::uint64_t Deal::position(int rank, std::uint64_t draw) const {
  if (in_runs()) return begins_[static_cast<std::size_t>(rank)] + draw;
  const std::uint64_t share = this->share(rank);
  const std::uint64_t iteration = draw / share;
  if (iteration < runs_.full) return iteration * batch() + share_begin(rank) + draw % share;
  return runs_.full * batch() + runs_.tail_begin(rank) + (draw - runs_.full * share);
}

std::uint64_t Deal::in_a_row(int rank, std::uint64_t draw) const {
  const std::uint64_t left = draws(rank) - draw;
  if (in_runs()) return left;
  const std::uint64_t share = this->share(rank);
  return std::min(left, share - draw % share);
}

std::uint64_t Deal::draws_below(int rank, std::uint64_t position) const {
  if (in_runs()) return part_in(position, draws_before(rank), draws(rank));
  const std::uint64_t share = this->share(rank);
  if (position < runs_.full * batch()) {
    return position / batch() * share + part_in(position % batch(), share_begin(rank), share);
  }
  return runs_.full * share +
         part_in(position - runs_.full * batch(), runs_.tail_begin(rank), runs_.tail_of(rank));
}

}  // namespace forebay
