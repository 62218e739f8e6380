// Extents that serve many samples, the leaves of a tree, kept for the next of them: where samples
// are read at random, a leaf would be read again for each of its records.
//
// What is kept stays. Once there is no room, extents are read again as before. Room is promised to
// an extent when its read is planned: what is planned while that read is on its way counts on it.
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
  /// Whether `extent` is there, or promised.
  bool holds(const Extent& extent) const;
  /// Sets room aside for `extent`, which keep() will bring; false when there is none.
  bool promise(const Extent& extent);
  /// Copies `bytes`, those of `extent`, which was promised.
  void keep(const Extent& extent, std::span<const std::byte> bytes);
  /// Promises that were not kept are given up: whoever was to bring these extents does not.
  void forget_promises();
  /// The bytes of [offset, offset + length), if a kept extent begins there; else nothing.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const;

 private:
  struct Kept {
    std::unique_ptr<std::byte[]> bytes;  ///< null while it is only promised
    std::uint64_t length = 0;
  };

  std::uint64_t room_;
  std::unordered_map<std::uint64_t, Kept> extents_;  ///< by offset
};

}  // namespace forebay
