// Memory of a reader's own, beside the stage: kept from use to use, never filled with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace forebay {

class PrivateMemory {
 public:
  /// `bytes` of memory at a page boundary. What was there before is lost.
  std::span<std::byte> get(std::uint64_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }
  /// Never given back: reads without an answer may still write into it.
  void abandon() { static_cast<void>(memory_.release()); }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Delete> memory_;
  std::uint64_t size_ = 0;
};

}  // namespace forebay
