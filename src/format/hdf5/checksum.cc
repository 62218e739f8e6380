#include "format/hdf5/checksum.hpp"

#include <algorithm>
#include <cstdint>

namespace forebay::hdf5 {
namespace {

// Two running sums of big-endian words modulo 65535. A sum stays below 2^32 for 360 words when it
// starts below 2^17, so it is reduced that often.
constexpr std::size_t kWordsBetweenFolds = 360;

std::uint32_t fold(std::uint32_t sum) { return (sum & 0xffffU) + (sum >> 16); }

std::uint32_t fletcher32(std::span<const std::byte> data) {
  std::uint32_t simple = 0;
  std::uint32_t weighted = 0;
  while (data.size() >= 2) {
    const std::size_t words = std::min(data.size() / 2, kWordsBetweenFolds);
    for (std::size_t i = 0; i < words; ++i) {
      simple += std::to_integer<std::uint32_t>(data[2 * i]) << 8 |
                std::to_integer<std::uint32_t>(data[2 * i + 1]);
      weighted += simple;
    }
    simple = fold(simple);
    weighted = fold(weighted);
    data = data.subspan(2 * words);
  }
  if (!data.empty()) {
    simple = fold(simple + (std::to_integer<std::uint32_t>(data[0]) << 8));
    weighted = fold(weighted + simple);
  }
  return fold(weighted) << 16 | fold(simple);
}

std::uint32_t swap_in_halves(std::uint32_t sum) {
  return (sum & 0x00ff00ffU) << 8 | (sum & 0xff00ff00U) >> 8;
}

}  // namespace

bool matches_fletcher32(std::span<const std::byte> data, std::span<const std::byte, 4> stored) {
  std::uint32_t expected = 0;
  for (std::size_t i = 4; i-- > 0;) {
    expected = expected << 8 | std::to_integer<std::uint32_t>(stored[i]);
  }
  const std::uint32_t sum = fletcher32(data);
  return expected == sum || expected == swap_in_halves(sum);
}

}  // namespace forebay::hdf5
