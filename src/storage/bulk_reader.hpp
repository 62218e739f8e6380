// Many reads at once: how the requests of a window get their bytes.
//
//   pread   the requests one after another, or by a few threads
//   mmap    copies out of a mapping
//   uring   many requests in flight from one thread (io_uring), optionally past the page cache
//
// A BulkReader belongs to one thread. It never writes outside of the spans that it was given, and
// after read() has returned or thrown it does not write into them any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "forebay/storage.hpp"

namespace forebay {

/// Fills `into` whole from `offset`.
struct ReadRequest {
  std::uint64_t offset = 0;
  std::span<std::byte> into;
};

struct BulkOptions {
  /// Requests in flight at once; 0 = what suits the engine.
  unsigned depth = 0;
  /// Longer requests are split into reads of this size; 0 = what suits the engine.
  std::uint64_t request_bytes = 0;
  /// Past the page cache (O_DIRECT), where offset, length and address allow it.
  bool direct = false;
};

/// What was asked of the operating system.
struct BulkCounters {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
};

class BulkReader {
 public:
  /// Called in the reading thread once request number `index` is complete; requests may complete
  /// in any order. May throw: reading ends and the exception leaves read().
  using Done = std::function<void(std::size_t index)>;

  virtual ~BulkReader() = default;
  BulkReader() = default;
  BulkReader(const BulkReader&) = delete;
  BulkReader& operator=(const BulkReader&) = delete;

  /// Returns when all requests are complete. Throws io naming file and offset.
  virtual void read(std::span<const ReadRequest> requests, const Done& done) = 0;
  virtual BulkCounters counters() const = 0;
  /// "uring, 32 in flight of 1 MiB, past the page cache": for explain().
  virtual std::string describe() const = 0;
};

}  // namespace forebay
