// Where is sample i? The answer that lets a root read a whole window in few large requests.
//
//   locate    extents(first, count)          which bytes of the file are needed
//   read      (by the caller, any engine)    brings them into memory, wherever it likes
//   unpack    unpack(first, count, bytes)    finds keys and values in these bytes, in place
//
// Nothing that an index says is believed: unpack() checks it against the bytes, and throws
// IndexMismatch before it hands out a record that the index has wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/record_source.hpp"

namespace forebay {

/// A stretch of a file that is needed whole.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool common = false;  ///< serves neighbouring samples too: worth keeping where they come later
  bool operator==(const Extent&) const = default;
};

/// The bytes of extents, once they are in memory.
class ExtentBytes {
 public:
  /// The bytes of [offset, offset + length), which lie inside one extent that extents() named.
  virtual std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const = 0;

 protected:
  ~ExtentBytes() = default;
};

/// The index and the file disagree: the index is stale, foreign or damaged. The remedy is another
/// way to locate, not another copy of the file.
class IndexMismatch : public Error {
 public:
  using Error::Error;
};

/// One thread at a time, though several indexes of one node may share memory.
class RecordIndex {
 public:
  virtual ~RecordIndex() = default;
  RecordIndex() = default;
  RecordIndex(const RecordIndex&) = delete;
  RecordIndex& operator=(const RecordIndex&) = delete;

  virtual std::uint64_t entries() const = 0;
  /// Appends what samples [first, first + count) need, in sample order: not sorted by offset, and
  /// neighbours that share a page name it once. first + count <= entries().
  virtual void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) = 0;
  /// Hands the records to `sink`, in order. Spans lie inside `bytes`.
  /// Throws IndexMismatch; corrupt, unsupported.
  virtual void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                      const RecordSink& sink) = 0;
  /// Notes that the index was found to be wrong. Returns whether this is the first to note it among
  /// those that share its memory, which is who warns of it.
  virtual bool give_up() { return true; }
  /// Memory that the index takes now, in bytes.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace forebay
