// How bytes get off a file: one small interface, behind which engines differ.
//
//   pread   explicit reads of exactly the bytes that were asked for
//   mmap    the file is mapped once, map() gives the bytes in place; a fault inside the mapping
//           (file cut, device gone) becomes an Error from check() instead of killing the process
//   uring   as pread; many reads at once go through io_uring, where the system has it
//   memory  bytes in memory (tests, and data that never had a file)
//
// All methods are local (no rank waits for another) and safe to call from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace forebay {

enum class Engine : std::uint8_t { mmap, pread, uring };

/// What a file moved so far. Mapped bytes are counted by their readers, not here.
struct FileCounters {
  std::uint64_t requests = 0;  ///< read calls that reached the operating system
  std::uint64_t bytes = 0;     ///< bytes those calls returned
};

/// Identity of a file's content as far as the file system can tell without reading it.
struct FileFingerprint {
  std::uint64_t size = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileFingerprint&) const = default;
};

class File {
 public:
  virtual ~File() = default;
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  virtual const std::string& path() const = 0;
  /// Size in bytes, asked anew each time.
  virtual std::uint64_t size() const = 0;
  /// Fills `out` whole from `offset`. Throws io when the bytes are not all there.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// The bytes from 0 to the size at open, in place; empty where the engine does not map.
  /// Lives as long as this object. After bytes were used, call check() before trusting them.
  virtual std::span<const std::byte> map() const = 0;
  /// Throws io when an access inside map() has faulted since open. Cheap: one atomic load.
  virtual void check() const = 0;
  virtual FileFingerprint fingerprint() const = 0;
  virtual FileCounters counters() const = 0;
};

/// Opens `path` read-only, taking no lock.
/// The mmap engine falls back to nothing: where a file system refuses to map, the Error names the
/// call and the file system and advises `--engine pread`.
/// Throws not_found, io (permission and device), usage (a directory), unsupported (cannot map).
std::shared_ptr<const File> open_file(const std::string& path, Engine engine);

/// A File over bytes that the caller provides (copied).
std::shared_ptr<const File> memory_file(std::string name, std::span<const std::byte> bytes);

}  // namespace forebay
