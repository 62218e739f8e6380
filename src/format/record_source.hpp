// What read/ needs from a format: records in sample order, from one process's point of view.
//
// A RecordSource is a snapshot of a data set: sample ids 0..entries()-1 in key order, fixed from
// open on. It has a position; seek() moves it, read() hands out records and advances it. The split
// in two calls lets the caller time locating and reading apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// One stored record. The spans are valid only inside the sink call that receives them.
struct Record {
  std::uint64_t sample = 0;
  std::span<const std::byte> key;
  std::span<const std::byte> value;
};

using RecordSink = std::function<void(const Record&)>;

/// What a source had to do so far, in units that do not depend on timing.
struct SourceCounters {
  std::uint64_t requests = 0;         ///< explicit reads issued to the operating system
  std::uint64_t bytes_requested = 0;  ///< bytes of those reads; for a mapping: bytes of pages used
  std::uint64_t pages_visited = 0;    ///< format pages looked at, skipping included
  std::uint64_t records_skipped = 0;  ///< records passed over while seeking
};

/// Identity of a data set's content; equal on every process that opened the same snapshot.
struct DatasetFingerprint {
  std::string text;  ///< one line, stable across platforms, e.g. "lmdb:txn=7,entries=100,..."
  bool operator==(const DatasetFingerprint&) const = default;
};

class RecordSource : private NonCopyable {
 public:
  virtual ~RecordSource() = default;

  virtual const std::string& path() const = 0;
  virtual std::uint64_t entries() const = 0;
  /// Bytes of the file that hold the records, their headers and padding included.
  virtual std::uint64_t stored_bytes() const = 0;
  virtual DatasetFingerprint fingerprint() const = 0;

  /// Moves to `sample` < entries(). Going forward may cost a walk over what lies between.
  virtual void seek(std::uint64_t sample) = 0;
  /// Hands `count` records to `sink`, from the position on; position + count <= entries().
  /// Throws corrupt, io, changed. After an error the position is undefined: seek() again.
  virtual void read(std::uint64_t count, const RecordSink& sink) = 0;
  /// Throws `changed` when a writer may have overwritten what was read since open.
  /// Call after reading and before delivery.
  virtual void check_unchanged() = 0;
  virtual SourceCounters counters() const = 0;
};

/// How a RecordSource moves its bytes.
enum class SourceEngine : std::uint8_t {
  liblmdb,  ///< the baseline: LMDB's own library, skipping with MDB_NEXT as Caffe does
  mmap,     ///< our reader over a mapping
  pread,    ///< our reader over explicit reads
};

/// Opens the data set at `path` ("DIR", "FILE" or either with "#name" for a named database).
/// Throws not_found, unsupported, corrupt, io, usage.
std::unique_ptr<RecordSource> open_records(const std::string& path, SourceEngine engine);

}  // namespace forebay
