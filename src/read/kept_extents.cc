#include "read/kept_extents.hpp"

#include <algorithm>

namespace forebay {

void KeptExtents::keep(const Extent& extent, std::span<const std::byte> bytes) {
  if (bytes.size() > room_ || holds(extent)) return;
  Kept& kept = extents_[extent.offset];
  room_ -= bytes.size();
  kept.bytes = std::make_unique<std::byte[]>(bytes.size());
  kept.length = bytes.size();
  std::ranges::copy(bytes, kept.bytes.get());
}

std::span<const std::byte> KeptExtents::at(std::uint64_t offset, std::uint64_t length) const {
  const auto found = extents_.find(offset);
  if (found == extents_.end() || found->second.length < length) return {};
  return {found->second.bytes.get(), length};
}

}  // namespace forebay
