// Numbers that look random, from numbers that do not: the same on every platform.
//
// mix() is a bijection on 64 bits in which every input bit moves every output bit with probability
// one half (two multiplications between three shifts; constants of D. Stafford's 13th variant).
// mix_key() folds several numbers into one, in order: (1, 2) and (2, 1) give different keys.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace forebay {

/// 2^64 over the golden ratio: far apart multiples, for counters.
inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mix_key(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t key = 0;
  for (const std::uint64_t number : numbers) key = mix(key + kGolden) ^ mix(number + 1);
  return mix(key);
}

}  // namespace forebay
