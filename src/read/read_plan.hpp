// Few large reads out of many extents.
//
//   extents, as the index names them      [c] [a] [b]      [z]      in sample order
//   sorted by offset                      [a] [b] [c]           [z]
//   closer than the gap limit: joined     [a.. b.. c]           [z]  an outlier stays by itself
//
// LMDB places about one record a commit into reused pages, megabytes away from its neighbours
// (FACTS): such outliers must neither be missed nor drag what lies between into memory.
//
// A read lands in memory as it lies in the file, one read behind the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/record_index.hpp"
#include "read/kept_extents.hpp"

namespace forebay {

struct PlannedRead {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t length = 0;
  std::uint64_t place = 0;  ///< in the memory of the plan
  bool operator==(const PlannedRead&) const = default;
};

struct ReadPlan {
  std::vector<PlannedRead> reads;  ///< by offset, apart from each other
  std::uint64_t bytes = 0;         ///< of all reads
};

/// Sorts `extents`, and joins those that overlap or lie at most `gap_bytes` apart.
ReadPlan plan_reads(std::vector<Extent>& extents, std::uint64_t gap_bytes);

/// The bytes that a plan brought into `memory`. Both must outlive it.
class PlannedBytes final : public ExtentBytes {
 public:
  /// `kept` has what the plan left out; may be null.
  PlannedBytes(const ReadPlan& plan, std::span<const std::byte> memory,
               const KeptExtents* kept = nullptr)
      : plan_(plan), memory_(memory), kept_(kept) {}

  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t length) const override;

 private:
  bool holds(std::size_t read, std::uint64_t offset) const;
  bool find_nearby(std::uint64_t offset) const;
  bool find(std::uint64_t offset) const;

  const ReadPlan& plan_;
  std::span<const std::byte> memory_;
  const KeptExtents* kept_;
  mutable std::size_t last_ = 0;  ///< extents are asked for in an order that is nearly theirs
};

}  // namespace forebay
