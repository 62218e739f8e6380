// Numbers of any tensor type, written and read as double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/half.hpp"
#include "forebay/tensor.hpp"

namespace forebay::test {

inline constexpr TensorType kTensorTypes[] = {TensorType::float16, TensorType::bfloat16,
                                              TensorType::float32, TensorType::float64,
                                              TensorType::int32,   TensorType::int64};

inline void put_number(TensorType type, std::byte* place, double value) {
  const auto store = [place](auto number) { std::memcpy(place, &number, sizeof(number)); };
  if (type == TensorType::float16) store(narrow_float16(static_cast<float>(value)));
  if (type == TensorType::bfloat16) store(narrow_bfloat16(static_cast<float>(value)));
  if (type == TensorType::float32) store(static_cast<float>(value));
  if (type == TensorType::float64) store(value);
  if (type == TensorType::int32) store(static_cast<std::int32_t>(value));
  if (type == TensorType::int64) store(static_cast<std::int64_t>(value));
}

inline double get_number(TensorType type, const std::byte* place) {
  const auto load = [place](auto number) {
    std::memcpy(&number, place, sizeof(number));
    return number;
  };
  if (type == TensorType::float16) return widen_float16(load(std::uint16_t{}));
  if (type == TensorType::bfloat16) return widen_bfloat16(load(std::uint16_t{}));
  if (type == TensorType::float32) return static_cast<double>(load(float{}));
  if (type == TensorType::float64) return load(double{});
  if (type == TensorType::int32) return load(std::int32_t{});
  return static_cast<double>(load(std::int64_t{}));
}

}  // namespace forebay::test
