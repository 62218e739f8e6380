#include "comm/thread_file.hpp"

#include <algorithm>

namespace forebay {

std::uint64_t ThreadFile::read(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t size = file_->size();
  const std::uint64_t count = std::min<std::uint64_t>(into.size(), size - std::min(offset, size));
  if (count > 0) file_->read(offset, into.first(count));
  return count;
}

}  // namespace forebay
