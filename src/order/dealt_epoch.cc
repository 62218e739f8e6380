#include "order/dealt_epoch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {

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
