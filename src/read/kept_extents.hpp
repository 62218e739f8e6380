// Extents that serve many samples, the leaves of a tree, kept for the next of them: where samples
// are read at random, a leaf would be read again for each of its records.
//
// What is kept stays. Once there is no room, extents are read again as before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "format/record_index.hpp"

namespace forebay {

/// One thread.
class KeptExtents {
 public:
  explicit KeptExtents(std::uint64_t most_bytes) : room_(most_bytes) {}

  bool enabled() const { return room_ > 0 || !extents_.empty(); }
  bool holds(const Extent& extent) const { return !at(extent.offset, extent.length).empty(); }
  /// Copies `bytes`, those of `extent`, if there is room.
  void keep(const Extent& extent, std::span<const std::byte> bytes);
  /// The bytes of [offset, offset + length), if a kept extent begins there; else nothing.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const;

 private:
  struct Kept {
    std::unique_ptr<std::byte[]> bytes;
    std::uint64_t length = 0;
  };

  std::uint64_t room_;
  std::unordered_map<std::uint64_t, Kept> extents_;  ///< by offset
};

}  // namespace forebay
