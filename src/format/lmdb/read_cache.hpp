// Recently read runs of a file, for reading page by page through explicit reads.
//
// A miss reads a run of several pages. When it begins where a cached run ends, the access is
// sequential and the new run is twice as long, up to kLargestRun; else it is kSmallestRun. So a
// lookup by key reads little, and a walk reads in large requests, also when it alternates between
// places of the file (leaves here, values there).
//
// One thread at a time. A returned span stays valid over the next kRuns - 1 fetches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "forebay/storage.hpp"

namespace forebay::lmdb {

class ReadCache {
 public:
  static constexpr std::size_t kRuns = 16;
  static constexpr std::size_t kSmallestRun = std::size_t{16} * 1024;
  static constexpr std::size_t kLargestRun = std::size_t{256} * 1024;

  /// `end`: where the file's bytes end; no read goes past it.
  ReadCache(std::shared_ptr<const File> file, std::uint64_t end);

  /// The bytes from `offset` on. offset + size <= end, size <= kLargestRun.
  std::span<const std::byte> fetch(std::uint64_t offset, std::size_t size);
  /// Reads any number of bytes into a buffer of their own, valid until the next call of large().
  std::span<const std::byte> large(std::uint64_t offset, std::size_t size);

  std::uint64_t requests() const { return requests_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Run {
    std::uint64_t offset = 0;
    std::size_t size = 0;
    std::size_t capacity = 0;
    std::uint64_t used_at = 0;
    std::unique_ptr<std::byte[]> bytes;

    bool holds(std::uint64_t from, std::size_t length) const {
      return from >= offset && from - offset <= size && size - (from - offset) >= length;
    }
  };

  Run* find(std::uint64_t offset, std::size_t size);
  std::size_t length_of_run(std::uint64_t offset, std::size_t size) const;
  Run& oldest();
  void go_forward();
  void read(std::uint64_t offset, std::span<std::byte> out);

  std::shared_ptr<const File> file_;
  std::uint64_t end_;
  bool forward_ = false;  ///< the file is read on, or values at length: no mere look into it
  std::array<Run, kRuns> runs_;
  std::size_t last_ = 0;  ///< the run that served last: most fetches hit it again
  std::unique_ptr<std::byte[]> large_;
  std::size_t large_capacity_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace forebay::lmdb
