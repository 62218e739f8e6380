// Memory of a reader's own, beside the stage: kept from use to use, never filled with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "core/limits.hpp"
#include "core/memory_limit.hpp"
#include "forebay/error.hpp"

namespace forebay {

class PrivateMemory {
 public:
  /// `bytes` of memory at a page boundary. What was there before is lost. Throws usage where there
  /// is not so much.
  std::span<std::byte> get(std::uint64_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      const bool left = bytes < kLarge || bytes <= memory_limit().available_bytes;
      if (left) {
        memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)));
      }
      if (memory_ == nullptr) {
        throw Error(ErrorKind::usage,
                    "there is no memory for " + std::to_string(bytes) +
                        " bytes of samples: " + memory_left(),
                    "read fewer at a time, or check files that claim as much");
      }
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }
  /// Never given back: reads without an answer may still write into it.
  void abandon() { static_cast<void>(memory_.release()); }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  /// Asked for beforehand: the system promises more than there is.
  static constexpr std::uint64_t kLarge = std::uint64_t{16} << 20;
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Delete> memory_;
  std::uint64_t size_ = 0;
};

}  // namespace forebay
