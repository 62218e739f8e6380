#include "order/leftover.hpp"

#include <algorithm>

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

}  // namespace forebay
