// Reads lists of samples in one thread: plan, few large reads, decoding, values.
//
// For commands, tests and small data. A loader does the same steps with threads of its own and in
// memory of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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
class PlacedBytes final : public FileBytes {
 public:
  PlacedBytes(std::span<const PlacedExtent> reads, std::span<const std::byte> memory)
      : reads_(reads), memory_(memory) {}
  std::span<const std::byte> at(std::uint32_t file, std::uint64_t offset,
                                std::uint64_t length) const override;

 private:
  std::span<const PlacedExtent> reads_;
  std::span<const std::byte> memory_;
};

/// One request a read, into its place of `memory`, for a BulkReader of data.whole().
std::vector<ReadRequest> requests_of(const DataSet& data, std::span<const PlacedExtent> reads,
                                     std::span<std::byte> memory);

/// How many bytes `reads` take.
std::uint64_t bytes_of(std::span<const PlacedExtent> reads);

/// Few reads out of extents that are sorted and apart from each other.
std::vector<PlacedExtent> place_extents(std::span<const FileExtent> extents,
                                        std::uint64_t gap_bytes);

/// Belongs to one thread; the data set must outlive it.
class SampleReader {
 public:
  SampleReader(const DataSet& data, const SampleReaderOptions& options);

  /// Reads and decodes `ids`; forgets those read before.
  /// Throws usage, io, corrupt, and changed when a file is not the one that was opened.
  void read(std::span<const std::uint64_t> ids);
  std::size_t size() const { return plan_ ? plan_->size() : 0; }
  /// Part or field `part` of the id at `position`; valid until the next read().
  std::span<const std::byte> part(std::size_t position, std::size_t part) const;
  /// The whole value; valid until the next call.
  std::span<const std::byte> value(std::size_t position);
  /// Of all files so far.
  BulkCounters counters() const { return bulk_->counters(); }

 private:
  const DataSet& data_;
  std::uint64_t gap_bytes_;
  std::unique_ptr<BulkReader> bulk_;
  std::unique_ptr<const Plan> plan_;
  std::vector<PlacedExtent> reads_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> value_;
};

}  // namespace forebay
