// Numbers drawn by counting: each from its key alone, the same on every platform.
#pragma once

#include <cstdint>

#include "core/mix.hpp"

namespace forebay::generate {

/// Uniform in (-1, 1), with 53 random bits.
inline double uniform(std::uint64_t key) {
  constexpr double kStep = 0x1p-53;
  const auto bits = static_cast<double>(mix(key + kGolden) >> 11);
  return (2 * bits + 1) * kStep - 1;
}

/// Mean 0, variance 1, nearly normal, within +-3.5: the sum of four uniform numbers of 16 bits.
inline float bell(std::uint64_t key) {
  const std::uint64_t bits = mix(key + kGolden);
  float sum = 0;
  for (int piece = 0; piece < 4; ++piece) {
    sum += static_cast<float>((bits >> (16 * piece)) & 0xffff) / 65536.0F;
  }
  constexpr float kRootOf3 = 1.7320508F;
  return (sum - 2) * kRootOf3;
}

}  // namespace forebay::generate
