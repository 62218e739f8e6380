// The bytes of extents where a mapping of their file has them.
#pragma once

#include <cstdint>
#include <span>

#include "format/record_index.hpp"

namespace forebay {

/// The mapping must outlive it.
class MappedBytes final : public ExtentBytes {
 public:
  explicit MappedBytes(std::span<const std::byte> mapping) : mapping_(mapping) {}

  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const override {
    if (offset <= mapping_.size() && length <= mapping_.size() - offset) {
      return mapping_.subspan(offset, length);
    }
    throw IndexMismatch(ErrorKind::corrupt, "the index names bytes behind the end of the file", "",
                        {.offset = offset});
  }

 private:
  std::span<const std::byte> mapping_;
};

}  // namespace forebay
