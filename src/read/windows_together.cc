#include "read/windows_together.hpp"

#include <algorithm>
#include <cmath>

namespace forebay {

std::uint64_t windows_together(const WindowFacts& facts) {
  const double window = std::max(1.0, facts.sample_bytes * static_cast<double>(facts.node_share));
  const auto fitting = static_cast<double>(facts.buffer_bytes) / 2 / window;
  const auto enough = std::ceil(static_cast<double>(facts.enough_bytes) / window);
  const std::uint64_t windows = facts.entries / facts.window;
  return static_cast<std::uint64_t>(
      std::max(1.0, std::min({fitting, enough, static_cast<double>(windows)})));
}

}  // namespace forebay
