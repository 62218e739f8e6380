#include "loader/share_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/posix_shared_memory.hpp"
#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLargestWindow = 16 * kMiB;
constexpr std::uint64_t kRing = 16 * kMiB;
constexpr std::uint64_t kPage = 4096;
// What samples that were looked at may have missed of the others.
constexpr double kMostVariation = 4;
constexpr std::uint64_t kSlack = 16 * kMiB;
constexpr std::uint64_t kEntryBytes = 64;  // of the stage's table, and some more

std::uint64_t expected_bytes(const ShareNeeds& needs) {
  return static_cast<std::uint64_t>(
      std::ceil(needs.sizes.mean * static_cast<double>(needs.samples)));
}

/// What the ranks of a node tell each other.
struct NodePart {
  std::uint64_t expected = 0;  ///< all fillings
  std::uint64_t left = 0;      ///< of its budget
};

}  // namespace

ShareMemory divide_budget(const ShareNeeds& needs) {
  ShareMemory memory;
  const auto windows = static_cast<std::uint64_t>(needs.windows);
  const auto mean = static_cast<std::uint64_t>(needs.sizes.mean) + 1;
  const auto stored = static_cast<std::uint64_t>(needs.stored_bytes);
  std::uint64_t in_stage = std::max(2 * stored, needs.sizes.largest) + kEntryBytes;
  if (needs.scattered) in_stage = std::max(in_stage, needs.sizes.largest + kPage);
  // Windows are kept short. A sample must fit, though, and larger ones than those that were looked
  // at should, at least where the budget is large.
  const std::uint64_t budget = needs.budget_bytes / windows;
  const std::uint64_t usual = std::min(kLargestWindow, budget / 8);
  const std::uint64_t area = std::max({usual, std::min(in_stage, budget / 4), budget / 16});
  memory.stage_bytes = area * windows;
  memory.window_samples = std::clamp<std::uint64_t>(needs.samples, 1, usual / in_stage + 1);
  const std::uint64_t batches =
      (windows + 1) * needs.batch_share * (mean + kEntryBytes) + 2 * needs.sizes.largest;
  memory.ring_bytes = std::min(std::max(kRing, batches), needs.budget_bytes / 4);
  memory.ring_blocks = std::max<std::uint64_t>(4096, (windows + 1) * needs.batch_share);
  // What a window has room for can come: in the batch that is made and in the one before it.
  if (area > memory.ring_bytes) memory.beside_ring_bytes = 2 * area;
  return memory;
}

void fit_shares(Communicator& world, Communicator& node, const ShareNeeds& needs,
                ShareMemory& memory) {
  const auto generations = static_cast<std::uint64_t>(needs.generations);
  const std::uint64_t taken = memory.stage_bytes + memory.ring_bytes + memory.beside_ring_bytes;
  const NodePart mine{.expected = expected_bytes(needs) * generations,
                      .left = needs.budget_bytes - std::min(taken, needs.budget_bytes)};
  std::uint64_t expected = 0, left = 0;
  for (const NodePart& share : gather_all(node, mine)) {
    expected += share.expected;
    left += share.left;
  }
  const std::uint64_t free = free_shared_memory();
  collectively(world, [&] {
    if (expected > left) {
      throw Error(ErrorKind::usage,
                  fmt::format("the samples that this node is to hold in memory need {} bytes, and "
                              "its budget leaves {}",
                              expected, left),
                  "raise --stage-bytes, use more nodes, or hold less (--order in_memory with a "
                  "lower --memory-ratio, --hold storage)");
    }
    if (expected > free) {
      throw Error(ErrorKind::io,
                  fmt::format("the samples that this node is to hold in memory need {} bytes of "
                              "shared memory, and {} are free",
                              expected, free),
                  "make /dev/shm larger (mount -o remount,size=...), or hold less");
    }
  });
  const double part = expected == 0 ? 0
                                    : static_cast<double>(mine.expected) /
                                          static_cast<double>(expected) * static_cast<double>(left);
  const double wanted = kMostVariation * static_cast<double>(mine.expected) +
                        static_cast<double>(kSlack * generations);
  memory.share_bytes = static_cast<std::uint64_t>(std::min(part, wanted)) / generations;
}

}  // namespace forebay
