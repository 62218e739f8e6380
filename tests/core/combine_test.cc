#include "core/combine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/half.hpp"
#include "forebay/error.hpp"
#include "tests/support/tensor_numbers.hpp"

namespace forebay {
namespace {

using test::get_number;
using test::kTensorTypes;
using test::put_number;

constexpr Combination kCombinations[] = {Combination::sum, Combination::min, Combination::max};

/// Small whole numbers, which all types hold exactly, sums included.
double number(std::size_t array, std::size_t i) {
  return static_cast<double>((array * 7 + i * 3) % 23) - 11;
}

double expected(Combination how, std::size_t arrays, std::size_t i) {
  double result = number(0, i);
  for (std::size_t array = 1; array < arrays; ++array) {
    const double next = number(array, i);
    if (how == Combination::sum) result += next;
    if (how == Combination::min) result = std::min(result, next);
    if (how == Combination::max) result = std::max(result, next);
  }
  return result;
}

void expect_combined(TensorType type, Combination how, std::size_t arrays, std::size_t elements) {
  const std::size_t size = size_of(type);
  std::vector<std::vector<std::byte>> memory(arrays + 1);
  std::vector<const std::byte*> sources;
  for (std::size_t array = 0; array <= arrays; ++array) {
    memory[array].resize(elements * size + 1);
    if (array == arrays) break;
    for (std::size_t i = 0; i < elements; ++i) {
      put_number(type, memory[array].data() + 1 + i * size, number(array, i));
    }
    sources.push_back(memory[array].data() + 1);  // unaligned
  }
  const std::span result = std::span(memory.back()).subspan(1);
  combine_all(type, how, sources, result);
  const auto check = [&](std::span<const std::byte> values) {
    for (std::size_t i = 0; i < elements; ++i) {
      ASSERT_EQ(get_number(type, values.data() + i * size), expected(how, arrays, i))
          << to_string(type) << ' ' << i;
    }
  };
  check(result);
  // Into the first one, and two by two.
  const std::span first = std::span(memory.front()).subspan(1);
  for (std::size_t array = 1; array < arrays; ++array) {
    combine(type, how, first, std::span<const std::byte>(memory[array]).subspan(1));
  }
  check(first);
}

TEST(Combine, GivesWhatNumbersGiveOneByOne) {
  for (const TensorType type : kTensorTypes) {
    for (const Combination how : kCombinations) {
      for (const std::size_t elements : {0, 1, 7, 1023, 1024, 1025, 5000}) {
        for (const std::size_t arrays : {1, 2, 3, 8}) {
          expect_combined(type, how, arrays, elements);
        }
      }
    }
  }
}

TEST(Combine, NanIsTheSmallestAndTheLargestWhereverItIs) {
  constexpr std::size_t kElements = 1500;
  for (const TensorType type : kTensorTypes) {
    if (type == TensorType::int32 || type == TensorType::int64) continue;
    for (const Combination how : {Combination::min, Combination::max}) {
      for (std::size_t lost = 0; lost < 3; ++lost) {
        std::vector<std::vector<std::byte>> memory(3);
        std::vector<const std::byte*> sources;
        for (std::size_t array = 0; array < 3; ++array) {
          memory[array].resize(kElements * size_of(type));
          for (std::size_t i = 0; i < kElements; ++i) {
            const bool nan = array == lost && i % 7 == 0;
            put_number(type, memory[array].data() + i * size_of(type),
                       nan ? std::numeric_limits<double>::quiet_NaN() : number(array, i));
          }
          sources.push_back(memory[array].data());
        }
        std::vector<std::byte> result(kElements * size_of(type));
        combine_all(type, how, sources, result);
        for (std::size_t i = 0; i < kElements; ++i) {
          const double got = get_number(type, result.data() + i * size_of(type));
          if (i % 7 == 0) {
            ASSERT_TRUE(std::isnan(got)) << to_string(type) << " of array " << lost;
          } else {
            ASSERT_EQ(got, expected(how, 3, i)) << to_string(type);
          }
        }
      }
    }
  }
}

TEST(Combine, SixteenBitsAreRoundedOnceHoweverManyAreSummed) {
  // 2048 + 1 + 1: each step alone would round back to 2048.
  std::vector<std::uint16_t> numbers{narrow_float16(2048), narrow_float16(1), narrow_float16(1)};
  std::vector<const std::byte*> sources;
  for (const auto& one : numbers) sources.push_back(reinterpret_cast<const std::byte*>(&one));
  std::uint16_t sum = 0;
  combine_all(TensorType::float16, Combination::sum, sources,
              std::as_writable_bytes(std::span(&sum, 1)));
  EXPECT_EQ(widen_float16(sum), 2050);
}

TEST(Combine, NeutralNumbersChangeNothing) {
  for (const TensorType type : kTensorTypes) {
    for (const Combination how : kCombinations) {
      std::vector<std::byte> neutral(size_of(type) * 3000);
      fill_neutral(type, how, neutral);
      std::vector<std::byte> values(neutral.size());
      for (std::size_t i = 0; i < 3000; ++i) {
        put_number(type, values.data() + i * size_of(type), number(1, i));
      }
      auto combined = values;
      combine(type, how, combined, neutral);
      EXPECT_EQ(combined, values) << to_string(type);
      combine(type, how, neutral, values);
      EXPECT_EQ(neutral, values) << to_string(type);
    }
  }
}

TEST(Combine, BitsOfWholeBytes) {
  std::vector<std::byte> a{std::byte{0b1100}, std::byte{0xFF}, std::byte{1}};
  const std::vector<std::byte> b{std::byte{0b1010}, std::byte{0}, std::byte{2}};
  auto both = a;
  combine(TensorType::int64, Combination::bit_and, both, b);
  EXPECT_EQ(both, (std::vector{std::byte{0b1000}, std::byte{0}, std::byte{0}}));
  combine(TensorType::int64, Combination::bit_or, a, b);
  EXPECT_EQ(a, (std::vector{std::byte{0b1110}, std::byte{0xFF}, std::byte{3}}));
}

TEST(Combine, MeansOfIntegersAreRoundedTowardZero) {
  std::vector<std::int64_t> values{7, -7, 8, 0};
  divide(TensorType::int64, std::as_writable_bytes(std::span(values)), 2);
  EXPECT_EQ(values, (std::vector<std::int64_t>{3, -3, 4, 0}));
  std::vector<float> floats{7, -7};
  divide(TensorType::float32, std::as_writable_bytes(std::span(floats)), 2);
  EXPECT_EQ(floats, (std::vector<float>{3.5F, -3.5F}));
}

TEST(Combine, IntegersMayOverflow) {
  std::int32_t value = std::numeric_limits<std::int32_t>::max();
  const std::int32_t one = 1;
  combine(TensorType::int32, Combination::sum, std::as_writable_bytes(std::span(&value, 1)),
          std::as_bytes(std::span(&one, 1)));
  EXPECT_EQ(value, std::numeric_limits<std::int32_t>::min()) << "as in MPI";
}

TEST(Combine, RefusesWhatDoesNotFit) {
  std::vector<std::byte> four(4);
  std::vector<std::byte> five(5);
  EXPECT_THROW(combine(TensorType::float32, Combination::sum, four, five), Error);
  EXPECT_THROW(combine(TensorType::float32, Combination::sum, five, five), Error);
  EXPECT_THROW(divide(TensorType::float32, four, 0), Error);
}

TEST(TensorType, IsReadAsItIsWritten) {
  for (const TensorType type : kTensorTypes) EXPECT_EQ(parse_tensor_type(to_string(type)), type);
  EXPECT_THROW(parse_tensor_type("float8"), Error);
}

}  // namespace
}  // namespace forebay
