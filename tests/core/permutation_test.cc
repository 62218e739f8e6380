// The keyed permutation: a bijection for every size, and nothing that statistics can tell from a
// fair shuffle. The statistical limits are chosen so that a fair shuffle fails once in about 10^6
// runs; keys are fixed, so a failure is a change of the permutation.
#include "core/permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/mix.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

std::vector<std::uint64_t> all_of(const Permutation& permutation) {
  std::vector<std::uint64_t> numbers(permutation.size());
  for (std::uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = permutation(i);
  return numbers;
}

/// Every number comes up once, and the inverse finds it.
void expect_bijection(std::uint64_t size, std::uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<bool> seen(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t number = permutation(i);
    ASSERT_LT(number, size) << "N=" << size << " at " << i;
    ASSERT_FALSE(seen[number]) << "N=" << size << " twice: " << number;
    seen[number] = true;
    ASSERT_EQ(permutation.inverse(number), i) << "N=" << size;
  }
}

/// How far chi-square lies above its mean, in standard deviations.
double deviation(const std::vector<std::uint64_t>& counts, double expected) {
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    chi_square += off * off / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t size = 1; size <= 2000 && !HasFailure(); ++size) expect_bijection(size, size);
}

// At scale 100, all 10^5 sizes; else a share of them, evenly spread (5 * 10^9 evaluations in all).
TEST(Permutation, IsABijectionForSizesUpTo100000) {
  const auto stride = static_cast<std::uint64_t>(std::max(1.0, 10'000 / test::test_scale()));
  for (std::uint64_t size = 2001 + stride / 3; size <= 100'000 && !HasFailure(); size += stride) {
    expect_bijection(size, size * 7);
  }
  expect_bijection(100'000, 3);
}

TEST(Permutation, LargeSizesAreInvertiblePointByPoint) {
  for (const std::uint64_t size :
       {std::uint64_t{1} << 40, (std::uint64_t{1} << 40) - 87, (std::uint64_t{1} << 40) + 15,
        (std::uint64_t{1} << 48), (std::uint64_t{1} << 48) - 59, (std::uint64_t{1} << 48) - 1}) {
    const Permutation permutation(size, 11);
    std::vector<std::uint64_t> images;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t number = i % 2 == 0 ? i / 2 : size - 1 - mix(i) % size;
      const std::uint64_t image = permutation(number);
      ASSERT_LT(image, size);
      ASSERT_EQ(permutation.inverse(image), number);
      ASSERT_EQ(permutation(permutation.inverse(number)), number);
      if (i % 2 == 0) images.push_back(image);
    }
    std::ranges::sort(images);
    EXPECT_EQ(std::ranges::adjacent_find(images), images.end()) << "N=" << size;
  }
}

TEST(Permutation, ManyAtOnceAreTheSameAsOneByOne) {
  for (const std::uint64_t size : {1, 2, 3, 7, 63, 64, 65, 1000, 99'991, 1 << 20}) {
    const Permutation permutation(size, size);
    for (const std::uint64_t first : {std::uint64_t{0}, size / 3, size - 1}) {
      std::vector<std::uint64_t> images(std::min<std::uint64_t>(size - first, 300));
      permutation.images(first, images);
      for (std::uint64_t i = 0; i < images.size(); ++i) {
        ASSERT_EQ(images[i], permutation(first + i)) << "N=" << size << " at " << first + i;
      }
    }
  }
}

// These numbers must never change: saved runs and other machines rely on them.
TEST(Permutation, IsTheSameOnEveryPlatform) {
  EXPECT_EQ(all_of(Permutation(10, 0)), (std::vector<std::uint64_t>{7, 5, 6, 0, 2, 8, 4, 9, 3, 1}));
  EXPECT_EQ(Permutation(60'000, 1)(0), 57475U);
  EXPECT_EQ(Permutation(60'000, 1)(59'999), 38143U);
  EXPECT_EQ(Permutation(std::uint64_t{1} << 40, 2)(123'456'789), 417927528821U);
  EXPECT_EQ(Permutation(std::uint64_t{1} << 48, 3)(1), 119322619804994U);
  EXPECT_EQ(mix(1), 6238072747940578789U);
  EXPECT_EQ(mix_key({1, 2, 3}), 4109184127476579301U);
  EXPECT_NE(mix_key({1, 2, 3}), mix_key({2, 1, 3}));
}

// All 120 permutations of five numbers come up equally often over many keys, and all 24 of four.
TEST(Permutation, AllPermutationsOfFewNumbersAreEquallyLikely) {
  for (const std::uint64_t size : {2, 3, 4, 5, 6}) {
    std::map<std::vector<std::uint64_t>, std::uint64_t> seen;
    std::vector<std::uint64_t> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    do seen[numbers] = 0;
    while (std::ranges::next_permutation(numbers).found);
    const std::uint64_t trials = 500 * seen.size();
    for (std::uint64_t key = 0; key < trials; ++key) {
      ++seen[all_of(Permutation(size, mix_key({5, key})))];
    }
    std::vector<std::uint64_t> counts;
    for (const auto& [permutation, count] : seen) counts.push_back(count);
    EXPECT_LT(deviation(counts, 500), 6) << "N=" << size;
  }
}

// Where number i goes, over many keys: uniform for each i, also at both ends and for sizes that are
// walked over.
TEST(Permutation, EveryPlaceIsEquallyLikely) {
  for (const std::uint64_t size : {7, 64, 100, 257}) {
    for (const std::uint64_t number : {std::uint64_t{0}, size / 2, size - 1}) {
      std::vector<std::uint64_t> counts(size);
      const std::uint64_t keys = 200 * size;
      for (std::uint64_t key = 0; key < keys; ++key) ++counts[Permutation(size, key)(number)];
      EXPECT_LT(deviation(counts, 200), 6) << "N=" << size << " number " << number;
    }
  }
}

// One key of a large size: 64 x 64 cells of (number, image) hold equally many, within the scatter
// of a fair shuffle.
TEST(Permutation, NumbersAndImagesAreIndependent) {
  constexpr std::uint64_t kCells = 64;
  for (const std::uint64_t size : {std::uint64_t{1'000'000}, std::uint64_t{999'983},
                                   std::uint64_t{1} << 20, std::uint64_t{1} << 40}) {
    for (std::uint64_t key = 0; key < 4; ++key) {
      const Permutation permutation(size, key);
      const std::uint64_t samples = std::min<std::uint64_t>(size, 1'000'000);
      std::vector<std::uint64_t> counts(kCells * kCells);
      for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t number = size / samples * i;
        const std::uint64_t row = i * kCells / samples;
        ++counts[row * kCells + permutation(number) * kCells / size];
      }
      const double expected = static_cast<double>(samples) / (kCells * kCells);
      EXPECT_LT(std::abs(deviation(counts, expected)), 6) << "N=" << size << " key " << key;
    }
  }
}

// Serial correlation of images that follow each other 1, 2, 3, 1000 and about sqrt(N) apart (where
// a number's left half changes): within 6 / sqrt(n) of nothing.
TEST(Permutation, SuccessiveImagesAreUncorrelated) {
  for (const std::uint64_t size : {std::uint64_t{1'000'000}, std::uint64_t{1} << 40}) {
    for (const std::uint64_t lag : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
                                    std::uint64_t{1000}, std::uint64_t{1} << 20}) {
      if (lag >= size) continue;
      const Permutation permutation(size, 17);
      const double middle = static_cast<double>(size - 1) / 2;
      double sum = 0, squares = 0;
      constexpr std::uint64_t kSamples = 400'000;
      for (std::uint64_t i = 0; i < kSamples; ++i) {
        const double one = static_cast<double>(permutation(i)) - middle;
        sum += one * (static_cast<double>(permutation((i + lag) % size)) - middle);
        squares += one * one;
      }
      EXPECT_LT(std::abs(sum / squares), 6 / std::sqrt(kSamples)) << "N=" << size << " lag " << lag;
    }
  }
}

// Fixed points and surviving neighbours: one each on average, Poisson distributed.
TEST(Permutation, FixedPointsAndSurvivingNeighboursAreRare) {
  std::uint64_t fixed = 0, neighbours = 0;
  constexpr std::uint64_t kKeys = 2000;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const auto images = all_of(Permutation(500, key));
    for (std::uint64_t i = 0; i < images.size(); ++i) {
      fixed += images[i] == i ? 1 : 0;
      neighbours += i > 0 && images[i] == images[i - 1] + 1 ? 1 : 0;
    }
  }
  const double scatter = 6 * std::sqrt(static_cast<double>(kKeys));
  EXPECT_NEAR(static_cast<double>(fixed), kKeys, scatter);
  EXPECT_NEAR(static_cast<double>(neighbours), kKeys, scatter);
}

TEST(Permutation, KeysThatDifferInOneBitShareNothing) {
  for (int bit = 0; bit < 64; ++bit) {
    const auto one = all_of(Permutation(1000, 42));
    const auto other = all_of(Permutation(1000, 42 ^ (std::uint64_t{1} << bit)));
    std::uint64_t same = 0;
    for (std::size_t i = 0; i < one.size(); ++i) same += one[i] == other[i] ? 1 : 0;
    EXPECT_LT(same, 12U) << "bit " << bit;
  }
}

}  // namespace
}  // namespace forebay
