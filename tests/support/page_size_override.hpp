// Makes liblmdb believe in another page size, so that databases with pages of 8 to 32 KiB can be
// made on any machine. Works by defining sysconf() in the program, before libc's.
#pragma once

#include <cstddef>

namespace forebay::test {

/// For this thread, while it lives. 0: the system's own.
class PageSizeOverride {
 public:
  explicit PageSizeOverride(std::size_t bytes);
  ~PageSizeOverride();
  PageSizeOverride(const PageSizeOverride&) = delete;
  PageSizeOverride& operator=(const PageSizeOverride&) = delete;
};

}  // namespace forebay::test
