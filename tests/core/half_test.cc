#include "core/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/scale.hpp"

namespace forebay {
namespace {

constexpr std::uint32_t kAll = 65536;

struct Format {
  int exponent_bits;
  int fraction_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t fraction(std::uint32_t bits) const { return bits & ((1U << fraction_bits) - 1); }
  std::uint32_t exponent(std::uint32_t bits) const {
    return (bits >> fraction_bits) & ((1U << exponent_bits) - 1);
  }
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1U << exponent_bits) - 1) << fraction_bits);
  }
  /// By the definition of the format.
  double value(std::uint32_t bits) const {
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    const int e = static_cast<int>(exponent(bits));
    const auto f = static_cast<double>(fraction(bits));
    if (e == (1 << exponent_bits) - 1) {
      return f != 0 ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
    }
    if (e == 0) return sign * std::ldexp(f, 1 - bias() - fraction_bits);
    return sign * std::ldexp(f + std::ldexp(1, fraction_bits), e - bias() - fraction_bits);
  }
};

const Format kFloat16{5, 10, &widen_float16, &narrow_float16};
const Format kBfloat16{8, 7, &widen_bfloat16, &narrow_bfloat16};

void expect_exact_widening(const Format& format) {
  for (std::uint32_t bits = 0; bits < kAll; ++bits) {
    const float got = format.widen(static_cast<std::uint16_t>(bits));
    const double expected = format.value(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(got), expected) << bits;
    }
    EXPECT_EQ(std::signbit(got), (bits & 0x8000U) != 0) << bits;
  }
}

void expect_return(const Format& format) {
  for (std::uint32_t bits = 0; bits < kAll; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::uint16_t back = format.narrow(format.widen(half));
    if (std::isnan(format.value(bits))) {
      EXPECT_EQ(back, half | (1U << (format.fraction_bits - 1))) << "quiet, its payload kept";
    } else {
      EXPECT_EQ(back, half);
    }
  }
}

/// Around the middle between each number and the next.
void expect_rounding(const Format& format) {
  for (std::uint16_t bits = 0; bits < format.infinity(); ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const double below = format.value(bits);
    const double above = next == format.infinity()
                             ? std::ldexp(1, format.bias() + 1)  // where numbers would go on
                             : format.value(next);
    const auto middle = static_cast<float>((below + above) / 2);
    if (!std::isfinite(middle) || static_cast<double>(middle) != (below + above) / 2) continue;
    const std::uint16_t even = bits % 2 == 0 ? bits : next;
    EXPECT_EQ(format.narrow(middle), even) << bits;
    EXPECT_EQ(format.narrow(-middle), even | 0x8000U) << bits;
    EXPECT_EQ(format.narrow(std::nextafter(middle, 0.0F)), bits);
    EXPECT_EQ(format.narrow(std::nextafter(middle, std::numeric_limits<float>::infinity())), next);
  }
  EXPECT_EQ(format.narrow(std::numeric_limits<float>::infinity()), format.infinity());
}

TEST(Half, EveryFloat16IsWidenedExactly) { expect_exact_widening(kFloat16); }
TEST(Half, EveryBfloat16IsWidenedExactly) { expect_exact_widening(kBfloat16); }
TEST(Half, EveryFloat16ComesBack) { expect_return(kFloat16); }
TEST(Half, EveryBfloat16ComesBack) { expect_return(kBfloat16); }
TEST(Half, TiesGoToTheEvenFloat16) { expect_rounding(kFloat16); }
TEST(Half, TiesGoToTheEvenBfloat16) { expect_rounding(kBfloat16); }

/// Whatever instructions they use: all numbers of 16 bits, at every place in a lane.
TEST(Half, ArraysAreConvertedAsSingleNumbersAre) {
  for (std::size_t shift = 0; shift < 9; ++shift) {
    std::vector<std::byte> bits((kAll + shift) * 2 + 1);
    for (std::uint32_t i = 0; i < kAll; ++i) {
      const auto half = static_cast<std::uint16_t>(i);
      std::memcpy(bits.data() + 1 + (i + shift) * 2, &half, 2);
    }
    std::vector<float> wide(kAll + shift);
    const std::byte* const from = bits.data() + 1;  // unaligned
    widen_float16(from, wide.data(), wide.size());
    std::vector<std::byte> back(wide.size() * 2 + 1);
    narrow_float16(wide.data(), back.data() + 1, wide.size());
    for (std::uint32_t i = 0; i < kAll; ++i) {
      const float expected = widen_float16(static_cast<std::uint16_t>(i));
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i + shift]),
                std::bit_cast<std::uint32_t>(expected))
          << i;
      std::uint16_t half = 0;
      std::memcpy(&half, back.data() + 1 + (i + shift) * 2, 2);
      ASSERT_EQ(half, narrow_float16(expected)) << i;
    }
  }
}

TEST(Half, RandomSinglesAreNarrowedAlikeInArrays) {
  std::mt19937 random(7);
  std::vector<float> values(test::random_cases(std::size_t{1} << 20));
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  std::vector<std::byte> bits(values.size() * 2);
  narrow_float16(values.data(), bits.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bits.data() + 2 * i, 2);
    ASSERT_EQ(half, narrow_float16(values[i])) << values[i];
  }
}

}  // namespace
}  // namespace forebay
