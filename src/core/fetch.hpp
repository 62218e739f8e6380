// Bytes on their way into the caches before they are used: where values lie apart, a processor does
// not know the next one by itself, and stops at each page.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace forebay {

/// The first `most` bytes. Costs little, and reads nothing that could fault.
inline void fetch(std::span<const std::byte> bytes, std::size_t most = 4096) {
  constexpr std::size_t kLine = 64;
  const std::size_t end = std::min(bytes.size(), most);
  for (std::size_t at = 0; at < end; at += kLine) __builtin_prefetch(bytes.data() + at);
}

}  // namespace forebay
