#include "read/windows_together.hpp"

#include <algorithm>
#include <cmath>

namespace forebay {

// What is read together must never be what does not fit: where samples are as much larger than the
// mean as this, window after window, it still does.
constexpr double kUneven = 64;

std::uint64_t windows_together(const WindowFacts& facts) {
  const double window = std::max(1.0, facts.sample_bytes * static_cast<double>(facts.node_share));
  const auto fitting = static_cast<double>(facts.buffer_bytes) / kUneven / window;
  const auto enough = std::ceil(static_cast<double>(facts.enough_bytes) / window);
  const std::uint64_t windows = std::min(facts.entries / facts.window, facts.most);
  return static_cast<std::uint64_t>(
      std::max(1.0, std::min({fitting, enough, static_cast<double>(windows)})));
}

}  // namespace forebay
