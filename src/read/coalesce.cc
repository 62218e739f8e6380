#include "read/coalesce.hpp"

#include <algorithm>
#include <cmath>

namespace forebay {

std::uint64_t choose_coalesce(const CoalesceFacts& facts) {
  const double sample =
      static_cast<double>(facts.stored_bytes) / static_cast<double>(facts.entries);
  const double iteration = std::max(1.0, sample * static_cast<double>(facts.node_share));
  const auto fitting = static_cast<double>(facts.buffer_bytes) / 2 / iteration;
  const auto enough = std::ceil(static_cast<double>(facts.enough_bytes) / iteration);
  const std::uint64_t batches = facts.entries / facts.batch;
  return static_cast<std::uint64_t>(
      std::max(1.0, std::min({fitting, enough, static_cast<double>(batches)})));
}

}  // namespace forebay
