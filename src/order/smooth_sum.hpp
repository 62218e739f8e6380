// Sums of many terms of a smooth function, in as many steps as the logarithm of their number.
//
// The middle is cut into pieces that double in length from either end, where the function may be
// steep; a piece is its integral (Gauss-Legendre, 8 points) and half its end terms
// (Euler-Maclaurin). Terms near the ends are added one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace forebay {

namespace smooth_sum_detail {

inline constexpr std::uint64_t kOneByOne = 512;

struct Node {
  double at;
  double weight;
};
inline constexpr std::array<Node, 4> kGauss{{{0.1834346424956498, 0.3626837833783620},
                                             {0.5255324099163290, 0.3137066458778873},
                                             {0.7966664774136267, 0.2223810344533745},
                                             {0.9602898564975363, 0.1012285362903763}}};

/// Terms first..last, with the end terms halved.
template <typename Function>
double piece(std::uint64_t first, std::uint64_t last, const Function& function) {
  const double middle = (static_cast<double>(first) + static_cast<double>(last)) / 2;
  const double half = (static_cast<double>(last) - static_cast<double>(first)) / 2;
  double sum = 0;
  for (const Node& node : kGauss) {
    sum += node.weight * (function(middle - half * node.at) + function(middle + half * node.at));
  }
  return sum * half;
}

template <typename Function>
double one_by_one(std::uint64_t first, std::uint64_t end, const Function& function) {
  double sum = 0;
  for (std::uint64_t i = first; i < end; ++i) sum += function(static_cast<double>(i));
  return sum;
}

}  // namespace smooth_sum_detail

/// The sum of function(i) for i = first..last; function takes and returns doubles.
template <typename Function>
double smooth_sum(std::uint64_t first, std::uint64_t last, const Function& function) {
  using namespace smooth_sum_detail;
  if (last < first) return 0;
  if (last - first < 4 * kOneByOne) return one_by_one(first, last + 1, function);
  const std::uint64_t low = first + kOneByOne, high = last - kOneByOne;
  double sum = one_by_one(first, low, function) + one_by_one(high + 1, last + 1, function) +
               (function(static_cast<double>(low)) + function(static_cast<double>(high))) / 2;
  const std::uint64_t middle = low + (high - low) / 2;
  for (std::uint64_t at = low, step = kOneByOne; at < middle; at += step, step *= 2) {
    sum += piece(at, std::min(at + step, middle), function);
  }
  for (std::uint64_t at = high, step = kOneByOne; at > middle;
       at -= std::min(step, at - middle), step *= 2) {
    sum += piece(at - std::min(step, at - middle), at, function);
  }
  return sum;
}

}  // namespace forebay
