// Bytes of a file in ascending order, for a walk from header to header: many at once where all are
// needed, else little more than was asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

class HeaderReader {
 public:
  explicit HeaderReader(const File& file) : file_(file), size_(file.size()) {}

  std::uint64_t size() const { return size_; }
  /// Valid until the next call. The bytes are inside the file.
  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + buffer_.size()) fill(offset, bytes);
    return std::span<const std::byte>(buffer_).subspan(offset - begin_, bytes);
  }

 private:
  // Headers that lie further apart are read one by one.
  static constexpr std::uint64_t kFarApart = 64 << 10;
  static constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kOneHeader = 512;

  void fill(std::uint64_t offset, std::uint64_t bytes) {
    const bool near = offset - std::min(offset, begin_ + buffer_.size()) < kFarApart;
    const std::uint64_t wanted = std::max(bytes, near ? kReadAtOnce : kOneHeader);
    buffer_.resize(std::min(wanted, size_ - offset));
    begin_ = offset;
    file_.read(offset, buffer_);
  }

  const File& file_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace forebay
