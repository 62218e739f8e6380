// Samples of a convention as a RecordIndex: over indexes of the databases' records, in front of
// whatever reads extents.
//
//   sample ids --> records of each database --> its index --> extents in the joined files
//
// A sample of one part is its record, in place. Several parts become one packed value
// (forebay/packed_parts.hpp) in memory of this object, valid inside the sink call; its key is what
// the parts' keys have in common, the number or the whole key. Keys of parts that do not belong
// together are an error that names the missing one: no sample is ever made of other records.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/convention/convention.hpp"
#include "format/record_index.hpp"

namespace forebay::convention {

/// The records of one database, and where its file begins among those that are read as one.
struct IndexedRecords {
  std::unique_ptr<RecordIndex> index;
  std::uint64_t begin = 0;
};

/// One thread at a time.
class MappedIndex final : public RecordIndex {
 public:
  /// `databases` are those of `convention`, in its order.
  MappedIndex(std::shared_ptr<const Convention> convention, std::vector<IndexedRecords> databases);

  std::uint64_t entries() const override { return convention_->samples(); }
  void extents(std::uint64_t first, std::uint64_t count, std::vector<Extent>& out) override;
  void unpack(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
              const RecordSink& sink) override;
  bool give_up() override;
  std::uint64_t memory_bytes() const override;

 private:
  using RecordSpan = std::span<const std::byte>;

  void check_range(std::uint64_t first, std::uint64_t count) const;
  template <typename Use>
  void for_each_stretch(std::size_t part, std::uint64_t first, std::uint64_t count, Use&& use);
  void unpack_part(std::size_t part, std::uint64_t first, std::uint64_t count,
                   const ExtentBytes& bytes, const RecordSink& sink);
  void unpack_parts(std::uint64_t first, std::uint64_t count, const ExtentBytes& bytes,
                    const RecordSink& sink);
  RecordSpan common_key(std::uint64_t sample, std::span<const RecordSpan> keys) const;

  std::shared_ptr<const Convention> convention_;
  std::vector<IndexedRecords> databases_;
  std::vector<std::uint64_t> first_records_;  ///< of each database
  std::vector<RecordSpan> keys_;              ///< by sample, then part: kept for their memory
  std::vector<RecordSpan> values_;
  std::vector<std::byte> packed_;
};

}  // namespace forebay::convention
