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

#include "format/sample_reader.hpp"

namespace forebay {

/// One thread.
class KeptExtents {
 public:
  explicit KeptExtents(std::uint64_t most_bytes) : room_(most_bytes) {}

  bool enabled() const { return room_ > 0 || !extents_.empty(); }
  /// Whether `extent` is there, or promised.
  bool holds(const FileExtent& extent) const;
  /// Sets room aside for `extent`, which keep() will bring; false when there is none.
  bool promise(const FileExtent& extent);
  /// Copies `bytes`, those of `extent`, which was promised.
  void keep(const FileExtent& extent, std::span<const std::byte> bytes);
  /// Promises that were not kept are given up: whoever was to bring these extents does not.
  void forget_promises();
  /// The bytes of [offset, offset + length), if a kept extent begins there; else nothing.
  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const;

 private:
  struct Kept {
    std::unique_ptr<std::byte[]> bytes;  ///< null while it is only promised
    std::uint64_t length = 0;
  };

  std::uint64_t room_;
  struct Place {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    bool operator==(const Place&) const = default;
  };
  struct HashOfPlace {
    std::size_t operator()(const Place& place) const {
      return (place.offset >> 12) ^ (place.offset << 40) ^ (std::size_t{place.file} << 48);
    }
  };
  std::unordered_map<Place, Kept, HashOfPlace> extents_;
};

/// What was read, and what is kept of before. Both must outlive it.
class BytesWithKept final : public PlacedBytes {
 public:
  BytesWithKept(std::span<const PlacedExtent> reads, std::span<const std::byte> memory,
                const KeptExtents& kept)
      : PlacedBytes(reads, memory), kept_(kept) {}

  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const override {
    if (const auto nearby = find_nearby(file, offset, length); nearby.data() != nullptr) {
      return nearby;
    }
    const auto kept = kept_.at(file, offset, length);
    return kept.empty() ? PlacedBytes::at(file, offset, length) : kept;
  }

 private:
  const KeptExtents& kept_;
};

}  // namespace forebay
