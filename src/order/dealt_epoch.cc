#include "order/dealt_epoch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"

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

Leftover::Leftover(const Deal& deal, std::uint64_t iterations) {
  std::uint64_t end = 0;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    const std::uint64_t draws = deal.draws(rank);
    const std::uint64_t taken = std::min(draws, iterations * deal.share(rank));
    starts_.push_back(deal.draws_before(rank) + taken);
    end += draws - taken;
    ends_.push_back(end);
  }
}

std::size_t Leftover::rank_at(std::uint64_t position) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
}

std::uint64_t Leftover::operator()(std::uint64_t position) const {
  const std::size_t rank = rank_at(position);
  return starts_[rank] + (position - (rank > 0 ? ends_[rank - 1] : 0));
}

Run Leftover::in_a_row(std::uint64_t position) const {
  const std::size_t rank = rank_at(position);
  const std::uint64_t begin = rank > 0 ? ends_[rank - 1] : 0;
  return {begin, ends_[rank] - begin};
}

DealtEpoch::DealtEpoch(Deal first, OrderEnd end, const std::vector<Segment>& done, int ranks,
                       std::uint64_t batch)
    : deal_(std::move(first)), end_(end), size_(deal_.length()) {
  for (std::size_t i = 0; i < done.size(); ++i) {
    require_possible(done[i]);
    const bool last = i + 1 == done.size();
    if (last && done[i].ranks == ranks && done[i].batch == batch) {
      first_iteration_ = done[i].iterations;
    } else {
      leave(done[i], last ? ranks : done[i + 1].ranks, last ? batch : done[i + 1].batch);
    }
  }
  steps_ = steps_of_deal();
}

std::uint64_t DealtEpoch::steps_of_deal() const {
  return end_ == OrderEnd::drop ? deal_.least_iterations() : deal_.most_iterations();
}

void DealtEpoch::require_possible(const Segment& segment) const {
  if (segment.iterations <= steps_of_deal()) return;
  throw Error(ErrorKind::usage,
              fmt::format("no run can have done {} iterations of this epoch on {} ranks: it had {}",
                          segment.iterations, segment.ranks, steps_of_deal()),
              "resume from the state that the run saved, with its options");
}

void DealtEpoch::leave(const Segment& segment, int next_ranks, std::uint64_t next_batch) {
  resumed_ = true;
  if (deal_.in_runs()) {
    before_.emplace_back(deal_, segment.iterations);
    deal_ = Deal::by_fair_runs(before_.back().length(), next_ranks, next_batch);
  } else {
    const std::uint64_t taken = std::min(deal_.length(), segment.iterations * segment.batch);
    shift_ += taken;
    deal_ = Deal::by_batch(deal_.length() - taken, next_ranks, next_batch);
  }
}

std::uint64_t DealtEpoch::dropped() const {
  if (end_ != OrderEnd::drop) return 0;
  return deal_.length() - steps_ * deal_.batch();
}

std::uint64_t DealtEpoch::repeated() const {
  if (end_ != OrderEnd::pad && end_ != OrderEnd::wrap) return 0;
  return steps_ * deal_.batch() - deal_.length();
}

std::uint64_t DealtEpoch::draws(int rank) const {
  return end_ == OrderEnd::exact ? deal_.draws(rank) : steps_ * deal_.share(rank);
}

std::uint64_t DealtEpoch::own(int rank) const { return std::min(deal_.draws(rank), draws(rank)); }

std::uint64_t DealtEpoch::in_epoch(std::uint64_t position) const {
  for (std::size_t level = before_.size(); level > 0; --level) {
    position = before_[level - 1](position);
  }
  return position + shift_;
}

std::uint64_t DealtEpoch::repeated_draw(int rank, std::uint64_t draw) const {
  const std::uint64_t own = deal_.draws(rank);
  return own - 1 - (draw - own) % own;
}

// The ranks below this one have filled up as much as they lack before it.
std::uint64_t DealtEpoch::wrapped(int rank, std::uint64_t draw) const {
  const std::uint64_t lacking_before = steps_ * deal_.share_begin(rank) - deal_.draws_before(rank);
  return (lacking_before + (draw - deal_.draws(rank))) % size_;
}

std::uint64_t DealtEpoch::position(int rank, std::uint64_t draw) const {
  if (draw < deal_.draws(rank)) return in_epoch(deal_.position(rank, draw));
  if (!goes_back(rank)) return wrapped(rank, draw);
  return in_epoch(deal_.position(rank, repeated_draw(rank, draw)));
}

std::uint64_t DealtEpoch::in_a_row(int rank, std::uint64_t draw) const {
  const std::uint64_t own = deal_.draws(rank);
  return draw < own && before_.empty() ? deal_.in_a_row(rank, draw) : 1;
}

DealtEpoch::Reach DealtEpoch::reach(std::size_t level, std::uint64_t position,
                                    const Run& region) const {
  if (level == 0) {
    const std::uint64_t back = position - region.first;
    return {back, region.count - back};
  }
  const Leftover& leftover = before_[level - 1];
  const Reach below = reach(level - 1, leftover(position), region);
  const Run row = leftover.in_a_row(position);
  const std::uint64_t back = position - row.first;
  return {std::min(below.back, back), std::min(below.forward, row.count - back)};
}

Run DealtEpoch::own_draws_in(const Run& region, int rank, std::uint64_t draw) const {
  if (!deal_.in_runs()) {
    const std::uint64_t first = draws_below(rank, region.first);
    const std::uint64_t end = draws_below(rank, region.first + region.count);
    return {first, std::min(end, own(rank)) - first};
  }
  const Reach row = reach(before_.size(), deal_.position(rank, draw), region);
  const std::uint64_t back = std::min(row.back, draw);
  return {draw - back, back + std::min(row.forward, own(rank) - draw)};
}

Run DealtEpoch::repeats_in(const Run& region, int rank, std::uint64_t draw) const {
  const std::uint64_t own = deal_.draws(rank);
  if (!goes_back(rank)) {
    const std::uint64_t at = wrapped(rank, draw);
    const std::uint64_t back = std::min(draw - own, at - region.first);
    const std::uint64_t forward = region.first + region.count - at;
    return {draw - back, back + std::min(forward, draws(rank) - draw)};
  }
  const Run repeated = own_draws_in(region, rank, repeated_draw(rank, draw));
  const std::uint64_t turn = own + (draw - own) / own * own;
  const std::uint64_t first = turn + own - (repeated.first + repeated.count);
  return {first, std::min(repeated.count, draws(rank) - first)};
}

Run DealtEpoch::draws_in(const Run& region, int rank, std::uint64_t draw) const {
  return draw < own(rank) ? own_draws_in(region, rank, draw) : repeats_in(region, rank, draw);
}

std::uint64_t DealtEpoch::begin_of(std::uint64_t iteration) const {
  return iteration >= deal_.most_iterations() ? size_ : shift_ + iteration * deal_.batch();
}

std::uint64_t DealtEpoch::draws_below(int rank, std::uint64_t position) const {
  return position <= shift_ ? 0 : deal_.draws_below(rank, position - shift_);
}

}  // namespace forebay
