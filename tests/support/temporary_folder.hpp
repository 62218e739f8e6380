// Files that exist for the length of a test.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace forebay::test {

class TemporaryFolder {
 public:
  /// Whoever makes data takes nothing from the user's cache and leaves nothing there: what is kept
  /// of one data set would be found for another of the same shape.
  TemporaryFolder() {
    ::setenv("XDG_CACHE_HOME", "/dev/null", 0);
    std::string pattern = (std::filesystem::temp_directory_path() / "forebay-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// Bytes in which every position differs from its neighbours and from its place in other pages.
inline std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(1 + (i * 31 + i / 4096) % 255);
  return bytes;
}

}  // namespace forebay::test
