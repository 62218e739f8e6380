// Samples of fixed size whose fields lie apart: where their bytes are, and how bytes become values.
//
//   sample ids    0 ............. | ............. | ............. N-1      run on over the parts
//                 part 0            part 1          part 2                 (a part is mostly a
//                 file)
//   a part        field x  [row 0][row 1][row 2]...                        each field stored its
//   way:
//                 field y  [chunk: rows 0-9][chunk: rows 10-19]...         FieldStorage
//
// Reading some ids takes four steps, of which the second is the caller's, with any engine:
//
//   plan      source.plan(ids)      which bytes are needed: each once, touching extents joined
//   read      extents()             into memory, wherever the caller likes
//   decode    decode(unit, ...)     only what cannot be used as it lies: filtered or split chunks,
//                                   numbers of another byte order; units are independent
//   use       value(position, f)    the field's bytes in this machine's order, in place or decoded
//
// A source never changes after it was opened and keeps no library's handle: plan() and the methods
// of a plan may be called from many threads at once, and before and after a fork. All is local.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "forebay/dataset.hpp"
#include "forebay/storage.hpp"
#include "format/field_storage.hpp"
#include "format/record_source.hpp"

namespace forebay {

/// One field of a part, and which of the source's files holds it.
struct PartField {
  std::uint32_t file = 0;
  std::shared_ptr<const FieldStorage> storage;
};

/// Consecutive samples whose fields are stored alike; `fields` as the schema has them.
struct SamplePart {
  std::uint64_t rows = 0;
  std::vector<PartField> fields;
};

/// What decoding did so far, in units that do not depend on timing.
struct DecodeCounters {
  std::uint64_t chunks = 0;         ///< filtered chunks decoded
  std::uint64_t bytes_decoded = 0;  ///< bytes of these chunks once decoded
};

class SamplePlan;

/// The open files of a data set, in the order of its samples.
using SampleFiles = std::vector<std::shared_ptr<const File>>;

class SampleSource {
 public:
  /// `format` names the format in words, "hdf5". Every part has all fields of `schema`.
  SampleSource(std::string path, std::string format, Schema schema, SampleFiles files,
               std::vector<SamplePart> parts);

  /// As the user named the data set.
  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }
  std::uint64_t entries() const { return first_.back(); }
  const Schema& schema() const { return schema_; }
  /// Of all fields of a sample.
  std::uint64_t sample_bytes() const { return sample_bytes_; }
  /// Whether every sample lies in its file as it is delivered: all fields in place, one behind the
  /// other. Then value(position, 0) of a plan is followed by the sample's other fields.
  bool packed() const { return packed_; }
  std::span<const std::shared_ptr<const File>> files() const { return files_; }
  std::span<const SamplePart> parts() const { return parts_; }
  /// The only file, or all of them joined into one (storage/joined_file.hpp): so that one
  /// BulkReader reads from all.
  const std::shared_ptr<const File>& whole() const { return whole_; }
  /// Where `extent` begins in whole().
  std::uint64_t offset_in_whole(const FileExtent& extent) const;
  /// Bytes of all files.
  std::uint64_t stored_bytes() const;
  /// Of the schema, the row counts, and the first and last bytes of every file as they were at
  /// open.
  DatasetFingerprint fingerprint() const { return fingerprint_; }
  /// Throws `changed` when a file is not the one it was at open. Call before delivery.
  void check_unchanged() const;
  /// The same for one of the files.
  void check_unchanged(std::uint32_t file) const;

  /// What `ids` need, in any order and with repeats. The plan must not outlive the source.
  /// Throws usage for an id that does not exist.
  SamplePlan plan(std::span<const std::uint64_t> ids) const;
  /// Appends the extents of plan(ids): by file and offset, apart from each other.
  void extents(std::span<const std::uint64_t> ids, std::vector<FileExtent>& out) const;
  /// Of all plans.
  DecodeCounters counters() const;

 private:
  friend class SamplePlan;

  std::string path_;
  std::string format_;
  Schema schema_;
  std::uint64_t sample_bytes_ = 0;
  bool packed_ = true;
  SampleFiles files_;
  std::shared_ptr<const File> whole_;
  std::vector<FileFingerprint> at_open_;
  std::vector<SamplePart> parts_;
  std::vector<std::uint64_t> first_;  // first id of each part, and entries()
  DatasetFingerprint fingerprint_;
  mutable std::atomic<std::uint64_t> chunks_ = 0;
  mutable std::atomic<std::uint64_t> bytes_decoded_ = 0;
};

/// The bytes that one list of ids needs, and the way from them to values. Made by
/// SampleSource::plan(). Movable; const methods are safe to call from many threads at once.
class SamplePlan {
 public:
  /// By file and offset, apart from each other; a chunk that must be decoded is named whole, once.
  const std::vector<FileExtent>& extents() const& { return extents_; }
  std::vector<FileExtent> extents() && { return std::move(extents_); }
  /// Positions, as many as ids were given.
  std::size_t size() const { return ids_; }
  /// Bytes that decode() writes in all; 0 when every value can be used where it lies.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  /// Calls of decode() that are needed before value().
  std::size_t units() const { return units_.size(); }

  /// Decodes unit number `unit` from `bytes` into its places of `scratch`, which has
  /// scratch_bytes() and starts at a multiple of 64. Different units never touch the same byte.
  /// Throws corrupt, naming file and offset.
  void decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte> scratch,
              DecodeSpace& space) const;
  /// All units, one after the other.
  void decode_all(const FileBytes& bytes, std::span<std::byte> scratch) const;

  /// Field `field` of the id at `position`: inside `bytes` or inside `scratch`, and valid as long.
  std::span<const std::byte> value(std::size_t position, std::size_t field, const FileBytes& bytes,
                                   std::span<const std::byte> scratch) const;

 private:
  friend class SampleSource;

  // The rows that are needed of one part; their slots follow each other over the parts.
  struct PartRows {
    std::size_t part = 0;
    std::uint64_t first_slot = 0;
    std::vector<std::uint64_t> rows;          // of the part, ascending, each once
    std::vector<std::uint64_t> scratch = {};  // where each field starts; kInPlace
  };
  struct Unit {
    std::size_t part_rows = 0;
    std::size_t field = 0;
    DecodeUnit rows;
  };
  static constexpr std::uint64_t kInPlace = UINT64_MAX;

  SamplePlan(const SampleSource& source, std::span<const std::uint64_t> ids);
  void add_part(std::size_t part, std::span<const std::uint64_t> ids);
  void add_fields(PartRows& rows);
  std::uint64_t slot_of(std::size_t position) const {
    return slots_.empty() ? position : slots_[position];
  }

  const SampleSource* source_;
  std::size_t ids_ = 0;
  std::vector<std::uint64_t> slots_;  // of each position; empty: ids ascend, and it is the position
  std::vector<PartRows> parts_;
  std::vector<FileExtent> extents_;
  std::vector<Unit> units_;
  std::uint64_t scratch_bytes_ = 0;
};

}  // namespace forebay
