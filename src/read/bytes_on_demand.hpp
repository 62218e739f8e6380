// The bytes of extents, each read when it is asked for: slow, but what fails is then the fault of
// the one record that needs it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "forebay/storage.hpp"
#include "format/record_index.hpp"

namespace forebay {

/// The file must outlive it. Keeps what it has read. Throws what the file throws.
class BytesOnDemand final : public ExtentBytes {
 public:
  explicit BytesOnDemand(const File& file) : file_(file) {}

  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const override {
    std::vector<std::byte>& bytes = read_.emplace_back(length);
    file_.read(offset, bytes);
    return bytes;
  }

 private:
  const File& file_;
  mutable std::deque<std::vector<std::byte>> read_;
};

}  // namespace forebay
