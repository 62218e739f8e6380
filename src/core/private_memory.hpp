// Memory of a reader's own, beside the stage: kept from use to use, never filled with zeros.
//
// Large pieces come from the system and go back to it. The heap would keep them, in an arena for
// each thread that has asked: a process that opens loaders time and again would hold ever more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace forebay {

/// Gives a piece back to where it came from.
struct PieceOwner {
  std::uint64_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using MemoryPiece = std::unique_ptr<std::byte, PieceOwner>;

/// At least at a multiple of 64; null where there is no memory.
MemoryPiece take_memory(std::uint64_t bytes);

class PrivateMemory {
 public:
  /// `bytes` of memory at a page boundary. What was there before is lost. Throws usage where there
  /// is not so much.
  std::span<std::byte> get(std::uint64_t bytes) {
    if (bytes > size_) grow(bytes);
    return {memory_.get(), bytes};
  }
  /// Never given back: reads without an answer may still write into it.
  void abandon() {
    static_cast<void>(memory_.release());
    size_ = 0;
  }

 private:
  void grow(std::uint64_t bytes);

  MemoryPiece memory_;
  std::uint64_t size_ = 0;
};

}  // namespace forebay
