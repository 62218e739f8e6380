#include "order/partial_window.hpp"

namespace forebay {

// The last rank p with s_p <= index: p * B / P < index + 1.
int PartialWindowMap::rank_of(std::uint64_t index) const {
  const std::uint64_t scaled = (index + 1) * static_cast<std::uint64_t>(window_.ranks);
  return static_cast<int>((scaled + window_.batch - 1) / window_.batch - 1);
}

std::uint64_t PartialWindowMap::operator()(std::uint64_t position) const {
  if (position < begin() || position >= end()) return position;
  const std::uint64_t index = position - begin();
  const int rank = rank_of(index / left_);
  // Left before it are the rest of lower ranks' runs; taken before it, all ranks' up to this one.
  return window_.begin + index + window_.iterations * share_begin(rank + 1);
}

std::uint64_t PartialWindowMap::in_a_row(std::uint64_t position) const {
  if (position >= end()) return UINT64_MAX;
  if (position < begin()) return begin() - position;
  const std::uint64_t index = position - begin();
  return left_ * share_begin(rank_of(index / left_) + 1) - index;
}

std::uint64_t PartialWindowMap::first_from(std::uint64_t bound) const {
  if (bound <= window_.begin || bound >= end()) return bound;
  const std::uint64_t index = bound - window_.begin;
  const int rank = rank_of(index / window_.coalesce);
  const std::uint64_t run = window_.coalesce * share_begin(rank);
  const std::uint64_t taken = window_.iterations * (share_begin(rank + 1) - share_begin(rank));
  const std::uint64_t inside = index - run;
  return begin() + left_ * share_begin(rank) + (inside > taken ? inside - taken : 0);
}

}  // namespace forebay
