// Memory for messages that is used again: fresh memory of some hundred kilobytes comes from the
// kernel page by page, which costs more than filling it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace forebay {

/// Not synchronized. Holds at most as many buffers as were out at once.
class SpareBuffers {
 public:
  using Buffer = std::vector<std::byte>;

  /// At least `bytes` long, with any content.
  Buffer take(std::size_t bytes) {
    Buffer buffer;
    if (!spare_.empty()) {
      buffer = std::move(spare_.back());
      spare_.pop_back();
    }
    if (buffer.size() < bytes) buffer.resize(bytes);
    return buffer;
  }
  void give_back(Buffer buffer) {
    if (!buffer.empty()) spare_.push_back(std::move(buffer));
  }

 private:
  std::vector<Buffer> spare_;
};

}  // namespace forebay
