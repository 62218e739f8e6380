// Where is record i of a tree? What stands behind the plans of LMDB data (record_plan.hpp).
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

#include "format/data_set.hpp"
#include "format/record_source.hpp"

namespace forebay::lmdb {

/// One thread at a time, though several indexes of one node may share memory.
class RecordIndex {
 public:
  virtual ~RecordIndex() = default;
  RecordIndex() = default;
  RecordIndex(const RecordIndex&) = delete;
  RecordIndex& operator=(const RecordIndex&) = delete;

  virtual std::uint64_t entries() const = 0;
  /// Appends what samples [first, first + count) need, in sample order: not sorted by offset, and
  /// neighbours that share a page name it once; of file 0. first + count <= entries().
  virtual void extents(std::uint64_t first, std::uint64_t count, std::vector<FileExtent>& out) = 0;
  /// Hands the records to `sink`, in order. Spans lie inside `bytes`.
  /// Throws IndexMismatch; corrupt, unsupported.
  virtual void unpack(std::uint64_t first, std::uint64_t count, const FileBytes& bytes,
                      const RecordSink& sink) = 0;
  /// Notes that the index was found to be wrong. Returns whether this is the first to note it among
  /// those that share its memory, which is who warns of it.
  virtual bool give_up() { return true; }
  /// Memory that the index takes now, in bytes.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace forebay::lmdb
