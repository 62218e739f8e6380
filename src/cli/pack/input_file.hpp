// A source file that may be gzipped: zlib reads both alike.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forebay::pack {

/// One thread. Reading forward is cheap; going back in a gzipped file unpacks it from its start.
class InputFile {
 public:
  /// Throws not_found, io.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  /// Fills `out` from `offset` of the unpacked content. Throws corrupt when the file ends sooner or
  /// does not unpack.
  void read(std::uint64_t offset, std::span<std::byte> out);
  /// Throws corrupt unless the unpacked content ends at `offset`.
  void check_end(std::uint64_t offset);

 private:
  void seek(std::uint64_t offset);

  std::string path_;
  gzFile file_ = nullptr;
};

/// Whole content as bytes. Throws not_found, io with the offset where reading failed; corrupt when
/// it exceeds `limit`.
std::vector<std::byte> read_file(const std::string& path, std::uint64_t limit);
/// Size in bytes. Throws not_found, io, and usage when `path` is no regular file.
std::uint64_t file_size(const std::string& path);
/// Path, size and time of change, for Source::fingerprint().
std::string file_fingerprint(const std::string& path);

}  // namespace forebay::pack
