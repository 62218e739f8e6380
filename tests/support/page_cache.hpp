// Files that are not in memory, for tests.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <vector>

#include "storage/page_cache.hpp"

namespace forebay::test {

/// Drops the page cache's copy of [offset, offset + length) of `path`; all of it by default. False
/// where the system keeps it (a file in memory) or does not tell.
inline bool drop_from_page_cache(const std::string& path, off_t offset = 0, off_t length = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool dropped =
      ::fsync(fd) == 0 && ::posix_fadvise(fd, offset, length, POSIX_FADV_DONTNEED) == 0;
  ::close(fd);
  return dropped &&
         !in_page_cache(*open_file(path, Engine::pread), static_cast<std::uint64_t>(offset), 1);
}

/// Whether the system tells that `path` is in memory whole, after it was read.
inline bool bring_into_page_cache(const std::string& path) {
  const auto file = open_file(path, Engine::pread);
  std::vector<std::byte> all(file->size());
  file->read(0, all);
  return in_page_cache(*file, 0, all.size());
}

}  // namespace forebay::test
