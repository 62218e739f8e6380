// Where the samples of one share lie in their owner's memory: offset and length in O(1).
//
// Samples of one size need no table. For others, with n samples that end at e(0) .. e(n-1), the
// encoded table holds the n + 1 bounds 0, e(0), .., e(n-1):
//
//   narrow   0 | bounds 0, 64, 128, .. in 64 bits | all bounds, less the one above, in 32 bits
//   wide     1 | all bounds in 64 bits            (where 64 samples take 4 GiB or more)
//
// which is 4.1 bytes a sample. The encoded form is what ranks send to each other; the reading side
// looks into it without unpacking, so that the ranks of a node can share one copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forebay {

/// Thread-safe once made: only reads.
class ShareTable {
 public:
  struct Place {
    std::uint64_t offset = 0;  ///< bytes from the start of the share
    std::uint64_t bytes = 0;
  };

  /// No samples.
  ShareTable() = default;
  static ShareTable fixed(std::uint64_t samples, std::uint64_t sample_bytes);
  /// Looks into `encoded`, which outlives this object and begins at a multiple of 8.
  /// Throws communication when its length does not fit `samples`.
  static ShareTable over(std::span<const std::byte> encoded, std::uint64_t samples);

  std::uint64_t samples() const { return samples_; }
  /// `index` < samples().
  Place at(std::uint64_t index) const;

 private:
  enum class Form : std::uint8_t { fixed, narrow, wide };

  std::uint64_t bound(std::uint64_t number) const;

  Form form_ = Form::fixed;
  std::uint64_t samples_ = 0;
  std::uint64_t sample_bytes_ = 0;             ///< fixed
  std::span<const std::uint64_t> bounds_;      ///< narrow: every 64th; wide: all
  std::span<const std::uint32_t> from_above_;  ///< narrow
};

/// The encoded table of samples that end at `ends` (ascending), into `to`, which is
/// encoded_table_bytes() long.
void encode_table(std::span<const std::uint64_t> ends, std::span<std::byte> to);
std::uint64_t encoded_table_bytes(std::span<const std::uint64_t> ends);

}  // namespace forebay
