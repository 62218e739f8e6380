// The mmap engine: the whole file, as large as it was at open, mapped once and read in place.
//
// Read-ahead. The mapping keeps the kernel's default advice (MADV_NORMAL): pages are read ahead
// around a fault, by the device's read_ahead_kb. That suits what this engine is for, walking a file
// forward. For random access it reads far more than is used; the remedy is `--engine pread`, which
// asks for exact bytes, not MADV_RANDOM, which would turn every forward walk into 4 KiB requests.
//
// read() goes through pread on the same descriptor, so its errors do not depend on the mapping.
#pragma once

#include <string>

#include "core/non_copyable.hpp"
#include "storage/fault_guard.hpp"
#include "storage/pread_file.hpp"

namespace forebay {

/// Owns one mapping of the first `size` bytes of `fd`; an empty file has an empty mapping.
class Mapping : private NonCopyable {
 public:
  /// Throws unsupported when the system refuses to map.
  Mapping(int fd, std::uint64_t size, const std::string& path);
  ~Mapping();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

class MmapFile final : public PreadFile {
 public:
  explicit MmapFile(std::string path);

  std::span<const std::byte> map() const override { return mapping_.bytes(); }
  void check() const override;

 private:
  // In this order: the guard must go before the mapping does.
  Mapping mapping_;
  FaultGuard guard_;
};

}  // namespace forebay
