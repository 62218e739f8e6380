#include "core/permutation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/mix.hpp"

namespace forebay {
namespace {

// Pairs of rounds, one for each half. Two fail tests/core/permutation_test.cc, three pass. A round
// of few numbers has few choices, so those take more of them until all permutations are equally
// likely.
constexpr unsigned kPairs = 4;
constexpr unsigned kPairsForFew = 16;
constexpr std::uint64_t kFew = 64;

// Numbers that images() takes through the rounds side by side: a multiplication of one does not
// wait for that of another.
constexpr std::size_t kLanes = 8;

/// The least even number whose square is not below `size`. The root of a double may be off by one;
/// sizes below 2^48 are exact in a double.
std::uint64_t even_root(std::uint64_t size) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
  while (root * root < size) ++root;
  while (root > 0 && (root - 1) * (root - 1) >= size) --root;
  return root + root % 2;
}

/// The upper 40 bits of the hash of `half`, scaled to 0..below-1: both factors' product fits, and
/// no value is more likely than another by more than 2^-15 of it. No member, so that it is inlined:
/// in a shared library others could replace members, and each number would pay for eight calls.
std::uint64_t keyed(std::uint64_t key, unsigned round, std::uint64_t half, std::uint64_t below) {
  return (mix(key + round * kGolden + half) >> 24) * below >> 40;
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : size_(size),
      key_(mix(key)),
      lefts_(even_root(size)),
      rights_((size + lefts_ - 1) / lefts_),
      rounds_(2 * (size < kFew ? kPairsForFew : kPairs)) {}

std::uint64_t Permutation::forth(std::uint64_t number) const {
  std::uint64_t left = number / rights_, right = number % rights_;
  for (unsigned round = 0; round < rounds_; round += 2) {
    left += keyed(key_, round, right, lefts_);
    if (left >= lefts_) left -= lefts_;
    right += keyed(key_, round + 1, left, rights_);
    if (right >= rights_) right -= rights_;
  }
  return left * rights_ + right;
}

std::uint64_t Permutation::back(std::uint64_t number) const {
  std::uint64_t left = number / rights_, right = number % rights_;
  for (unsigned round = rounds_; round > 0; round -= 2) {
    const std::uint64_t off_right = keyed(key_, round - 1, left, rights_);
    right = right >= off_right ? right - off_right : right + rights_ - off_right;
    const std::uint64_t off_left = keyed(key_, round - 2, right, lefts_);
    left = left >= off_left ? left - off_left : left + lefts_ - off_left;
  }
  return left * rights_ + right;
}

std::uint64_t Permutation::operator()(std::uint64_t number) const {
  if (size_ == 1) return number;  // an order that keeps all together asks this for every sample
  do number = forth(number);
  while (number >= size_);
  return number;
}

void Permutation::images(std::uint64_t first, std::span<std::uint64_t> to) const {
  if (size_ == 1) {
    std::ranges::fill(to, 0);
    return;
  }
  std::array<std::uint64_t, kLanes> left, right;
  std::uint64_t next_left = first / rights_, next_right = first % rights_;
  while (!to.empty()) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      left[i] = next_left;
      right[i] = next_right;
      if (++next_right == rights_) {
        next_right = 0;
        ++next_left;
      }
    }
    for (unsigned round = 0; round < rounds_; round += 2) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        left[i] += keyed(key_, round, right[i], lefts_);
        if (left[i] >= lefts_) left[i] -= lefts_;
      }
      for (std::size_t i = 0; i < kLanes; ++i) {
        right[i] += keyed(key_, round + 1, left[i], rights_);
        if (right[i] >= rights_) right[i] -= rights_;
      }
    }
    const std::size_t count = std::min(kLanes, to.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = left[i] * rights_ + right[i];
      to[i] = number < size_ ? number : (*this)(number);
    }
    to = to.subspan(count);
  }
}

std::uint64_t Permutation::inverse(std::uint64_t number) const {
  if (size_ == 1) return number;
  do number = back(number);
  while (number >= size_);
  return number;
}

}  // namespace forebay
