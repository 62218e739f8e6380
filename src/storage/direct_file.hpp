// The second descriptor of a file, for reads past the page cache (O_DIRECT).
#pragma once

#include <string>

#include "core/non_copyable.hpp"
#include "storage/request_splitter.hpp"

namespace forebay {

/// Not open at first. Opened through the first descriptor, so that it is the same file even if the
/// path now names another. Where O_DIRECT is refused, usable() is false and the log says so.
class DirectFile : private NonCopyable {
 public:
  ~DirectFile();

  /// Call once. `fd` is the first descriptor.
  void open(int fd, const std::string& path);
  bool usable() const { return rules_.offset_alignment != 0; }
  int get() const { return fd_; }
  /// Zeros when not usable.
  DirectRules rules() const { return rules_; }
  /// For a file system that accepts the flag at open, but not the reads.
  void refuse(const std::string& path, int error);

 private:
  int fd_ = -1;
  DirectRules rules_;
};

}  // namespace forebay
