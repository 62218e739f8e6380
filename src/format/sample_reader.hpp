// Reads lists of samples in one thread: plan, few large reads, decoding, values.
//
// For commands, tests and small data. A loader does the same steps with threads of its own and in
// memory of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/private_memory.hpp"
#include "format/data_set.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

struct SampleReaderOptions {
  Engine engine = Engine::pread;
  BulkOptions bulk;
  /// Extents at most so far apart become one read, with what lies between.
  std::uint64_t gap_bytes = 0;
};

/// One read of a plan; it lands in memory behind the one before.
struct PlacedExtent {
  FileExtent extent;
  std::uint64_t place = 0;
};

/// The bytes of reads, by file and offset.
class PlacedBytes : public FileBytes {
 public:
  PlacedBytes(std::span<const PlacedExtent> reads, std::span<const std::byte> memory)
      : reads_(reads), memory_(memory) {}
  virtual ~PlacedBytes() = default;
  /// Throws IndexMismatch for bytes that were not read.
  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const override;

 protected:
  /// In the read that was asked last, or the one behind it; nothing where it is not there.
  std::span<const std::byte> find_nearby(std::uint32_t file, std::uint64_t offset,
                                         std::uint64_t length) const;

 private:
  std::span<const std::byte> in_read(std::size_t read, std::uint32_t file, std::uint64_t offset,
                                     std::uint64_t length) const;

  std::span<const PlacedExtent> reads_;
  std::span<const std::byte> memory_;
  mutable std::atomic<std::size_t> last_ = 0;  ///< bytes are asked for in an order nearly theirs
};

/// The bytes of files that are mapped, where they are.
class MappedFileBytes final : public FileBytes {
 public:
  explicit MappedFileBytes(std::vector<std::span<const std::byte>> maps) : maps_(std::move(maps)) {}
  /// Throws IndexMismatch behind the end of the file.
  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const override;
  bool are_mapped() const override { return true; }

 private:
  std::vector<std::span<const std::byte>> maps_;
};

/// One request a read, into its place of `memory`, for a BulkReader of data.whole().
std::vector<ReadRequest> requests_of(const DataSet& data, std::span<const PlacedExtent> reads,
                                     std::span<std::byte> memory);

/// How many bytes `reads` take.
std::uint64_t bytes_of(std::span<const PlacedExtent> reads);

/// Few reads out of extents that are sorted and apart from each other.
std::vector<PlacedExtent> place_extents(std::span<const FileExtent> extents,
                                        std::uint64_t gap_bytes);

/// Brings the bytes of `reads`, which are those of `plan`, into their places of `memory`.
using FetchReads = std::function<void(const Plan& plan, std::span<const PlacedExtent> reads,
                                      std::span<std::byte> memory)>;
/// Through a reader of data.whole(). Both outlive it.
FetchReads fetch_through(const DataSet& data, BulkReader& bulk);

/// Some samples, and the memory that they lie in. Belongs to one thread; the data set must outlive
/// it.
class SampleReader {
 public:
  /// By a reader of its own.
  SampleReader(const DataSet& data, const SampleReaderOptions& options);
  /// By `fetch`; extents at most `gap_bytes` apart become one read.
  static SampleReader by(const DataSet& data, FetchReads fetch, std::uint64_t gap_bytes = 0) {
    return {data, std::move(fetch), gap_bytes, {}};
  }
  /// In place: all files are mapped.
  static SampleReader in_place(const DataSet& data, std::vector<std::span<const std::byte>> maps) {
    return {data, {}, 0, std::move(maps)};
  }

  /// Reads and decodes `ids`; forgets those read before. An index that does not fit is given up.
  /// Throws usage, io, corrupt, and changed when a file is not the one that was opened.
  void read(std::span<const std::uint64_t> ids) { read(runs_of(ids)); }
  void read(const std::vector<IdRun>& runs);
  std::size_t size() const { return keys_.size(); }
  /// Parts or fields of the id at `position`; valid until the next read().
  std::span<const std::span<const std::byte>> parts(std::size_t position) const {
    const std::size_t of_each = data_.facts().part_count();
    return std::span(parts_).subspan(position * of_each, of_each);
  }
  std::span<const std::byte> part(std::size_t position, std::size_t part) const {
    return parts(position)[part];
  }
  /// What the sample is called; empty unless facts().named. As parts().
  std::span<const std::byte> key(std::size_t position) const { return keys_[position]; }
  /// The whole value; valid until the next call.
  std::span<const std::byte> value(std::size_t position);
  /// Of the reader of its own, of all files so far.
  BulkCounters counters() const { return bulk_->counters(); }

 private:
  SampleReader(const DataSet& data, FetchReads fetch, std::uint64_t gap_bytes,
               std::vector<std::span<const std::byte>> maps)
      : data_(data), gap_bytes_(gap_bytes), fetch_(std::move(fetch)), maps_(std::move(maps)) {}

  void bring(std::span<const IdRun> runs);
  void find(const FileBytes& bytes);

  const DataSet& data_;
  std::uint64_t gap_bytes_ = 0;
  std::unique_ptr<BulkReader> bulk_;
  FetchReads fetch_;
  std::vector<std::span<const std::byte>> maps_;
  std::unique_ptr<const Plan> plan_;
  std::vector<PlacedExtent> reads_;
  PrivateMemory memory_, scratch_;
  std::vector<std::span<const std::byte>> keys_, parts_;
  std::vector<std::byte> value_;
};

}  // namespace forebay
