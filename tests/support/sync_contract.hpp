// What tensors hold in tests of synchronization, and what they have to become: small whole numbers,
// which every type holds exactly, also summed over many ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/mix.hpp"
#include "forebay/sync.hpp"
#include "tests/support/tensor_numbers.hpp"

namespace forebay::test {

inline constexpr Reduction kAllReductions[] = {Reduction::sum, Reduction::mean, Reduction::min,
                                               Reduction::max};

inline std::uint64_t seed_of(const TensorSpec& tensor, std::uint64_t step) {
  return mix_key({std::hash<std::string>{}(tensor.name), step});
}

inline int number_of(std::uint64_t seed, int rank, std::uint64_t element) {
  return static_cast<int>(mix(seed + static_cast<std::uint64_t>(rank) * 7919 + element * kGolden) %
                          17) -
         8;
}

/// What a rank puts into a tensor.
inline std::vector<std::byte> numbers_of(const TensorSpec& tensor, int rank, std::uint64_t step) {
  std::vector<std::byte> bytes(tensor.bytes());
  const std::uint64_t seed = seed_of(tensor, step);
  const std::size_t size = size_of(tensor.type);
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
    put_number(tensor.type, bytes.data() + i * size, number_of(seed, rank, i));
  }
  return bytes;
}

/// What it has to become where `adding` of `ranks` ranks, the first ones, took part.
inline double expected_number(Reduction reduction, std::uint64_t seed, std::uint64_t element,
                              int adding, int ranks) {
  double result = number_of(seed, 0, element);
  for (int rank = 1; rank < adding; ++rank) {
    const double other = number_of(seed, rank, element);
    if (reduction == Reduction::min) {
      result = std::min(result, other);
    } else if (reduction == Reduction::max) {
      result = std::max(result, other);
    } else {
      result += other;
    }
  }
  return reduction == Reduction::mean ? result / ranks : result;
}

inline void expect_reduced(const TensorSpec& tensor, Reduction reduction,
                           std::span<const std::byte> out, std::uint64_t step, int adding,
                           int ranks) {
  const std::uint64_t seed = seed_of(tensor, step);
  const std::size_t size = size_of(tensor.type);
  std::uint64_t wrong = 0;
  std::string first;
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
    const double got = get_number(tensor.type, out.data() + i * size);
    double expected = expected_number(reduction, seed, i, adding, ranks);
    if (tensor.type == TensorType::int32 || tensor.type == TensorType::int64) {
      expected = std::trunc(expected);
    } else if (reduction == Reduction::mean) {
      // Rounded to the type: half a unit in the last place.
      const double unit = tensor.type == TensorType::bfloat16  ? 1.0 / 256
                          : tensor.type == TensorType::float16 ? 1.0 / 2048
                                                               : 1e-7;
      if (std::abs(got - expected) <= std::abs(expected) * unit) expected = got;
    }
    if (got == expected) continue;
    if (wrong++ == 0)
      first = "element " + std::to_string(i) + ": " + std::to_string(got) + " instead of " +
              std::to_string(expected);
  }
  EXPECT_EQ(wrong, 0U) << tensor.name << " " << to_string(tensor.type) << " "
                       << to_string(reduction) << ": " << first;
}

/// An allreduce with its memory.
struct OneSum {
  TensorSpec tensor;
  Reduction reduction = Reduction::sum;
  std::vector<std::byte> in = {};
  std::vector<std::byte> out = {};
  SyncHandle handle = {};

  void start(SyncEngine& engine, int rank, std::uint64_t step, bool in_place = false) {
    in = numbers_of(tensor, rank, step);
    out = in_place ? in : std::vector<std::byte>(in.size());
    handle = engine.allreduce(tensor, in_place ? out : in, out, reduction);
  }
  void expect(std::uint64_t step, int adding, int ranks) {
    handle.wait();
    expect_reduced(tensor, reduction, out, step, adding, ranks);
  }
};

/// A tensor of every type, reduction and size; `largest`: the elements of the largest ones.
inline std::vector<OneSum> sums_of_all_kinds(std::uint64_t largest) {
  std::vector<OneSum> sums;
  for (const TensorType type : kTensorTypes) {
    for (const Reduction reduction : kAllReductions) {
      for (const std::uint64_t elements :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{17}, largest}) {
        auto& sum = sums.emplace_back();
        sum.reduction = reduction;
        sum.tensor = {.name = std::string(to_string(type)) + std::string(to_string(reduction)) +
                              std::to_string(elements),
                      .type = type,
                      .shape = {elements}};
      }
    }
  }
  return sums;
}

}  // namespace forebay::test
