#include "order/partial_window.hpp"

namespace forebay {

std::uint64_t PartialWindowMap::operator()(std::uint64_t position) const {
  if (position < begin() || position >= end()) return position;
  const std::uint64_t index = position - begin();
  // Left before it are the rest of lower ranks' runs; taken before it, all ranks' up to this one.
  return begin_ + index + taken_ * whole_.share_begin(left_.rank_at(index) + 1);
}

std::uint64_t PartialWindowMap::in_a_row(std::uint64_t position) const {
  if (position >= end()) return UINT64_MAX;
  if (position < begin()) return begin() - position;
  const std::uint64_t index = position - begin();
  return left_.begin(left_.rank_at(index) + 1) - index;
}

std::uint64_t PartialWindowMap::first_from(std::uint64_t bound) const {
  if (bound <= begin_ || bound >= end()) return bound;
  const std::uint64_t index = bound - begin_;
  const int rank = whole_.rank_at(index);
  const std::uint64_t taken = taken_ * whole_.share(rank);
  const std::uint64_t inside = index - whole_.begin(rank);
  return begin() + left_.begin(rank) + (inside > taken ? inside - taken : 0);
}

}  // namespace forebay
