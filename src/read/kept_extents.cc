#include "read/kept_extents.hpp"

#include "core/copy_values.hpp"

namespace forebay {

bool KeptExtents::holds(const FileExtent& extent) const {
  const auto found = extents_.find({extent.file, extent.offset});
  return found != extents_.end() && found->second.length >= extent.length;
}

bool KeptExtents::promise(const FileExtent& extent) {
  if (extent.length > room_ || extents_.contains({extent.file, extent.offset})) return false;
  extents_[{extent.file, extent.offset}].length = extent.length;
  room_ -= extent.length;
  return true;
}

void KeptExtents::keep(const FileExtent& extent, std::span<const std::byte> bytes) {
  const auto found = extents_.find({extent.file, extent.offset});
  if (found == extents_.end() || found->second.length != bytes.size()) return;
  Kept& kept = found->second;
  if (kept.bytes) return;
  kept.bytes = std::make_unique<std::byte[]>(bytes.size());
  copy_values(bytes, std::span(kept.bytes.get(), bytes.size()));
}

void KeptExtents::forget_promises() {
  std::erase_if(extents_, [this](const auto& entry) {
    const Kept& kept = entry.second;
    if (!kept.bytes) room_ += kept.length;
    return !kept.bytes;
  });
}

std::span<const std::byte> KeptExtents::at(std::uint32_t file, std::uint64_t offset,
                                           std::uint64_t length) const {
  const auto found = extents_.find({file, offset});
  if (found == extents_.end()) return {};
  const Kept& kept = found->second;
  if (!kept.bytes || kept.length < length) return {};
  return {kept.bytes.get(), length};
}

}  // namespace forebay
