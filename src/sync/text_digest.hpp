// One number for names, shapes and whole plans, to be compared between ranks: 64 bits that differ
// for different things but for one chance in 2^64. Not meant against people who search for two
// equal ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/mix.hpp"
#include "forebay/tensor.hpp"

namespace forebay {

inline std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = mix(text.size() + kGolden);
  while (!text.empty()) {
    std::uint64_t word = 0;
    const std::size_t bytes = std::min<std::size_t>(text.size(), sizeof word);
    std::memcpy(&word, text.data(), bytes);
    digest = mix(digest ^ word) + kGolden;
    text.remove_prefix(bytes);
  }
  return digest;
}

/// Of what is transferred, on top of another digest.
inline std::uint64_t digest_of(std::uint64_t digest, TensorType type, Reduction reduction,
                               std::span<const std::uint64_t> shape) {
  digest = mix_key({digest, static_cast<std::uint64_t>(type), static_cast<std::uint64_t>(reduction),
                    shape.size()});
  for (const std::uint64_t extent : shape) digest = mix_key({digest, extent});
  return digest;
}

}  // namespace forebay
