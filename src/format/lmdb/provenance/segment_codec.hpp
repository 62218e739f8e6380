// The leaves of one segment as a few hundred bytes to a few kilobytes.
//
// A writer of LMDB takes pages mostly in file order, so the place of each leaf and each overflow
// run is predicted from what came before it, and only the difference is kept. Six streams of small
// numbers, which zstd then shortens together:
//
//   records of each leaf            | slots that were passed over before each run
//   page of each leaf - prediction  | page of each run - prediction
//   runs of each leaf               | pages of each run
//
// Prediction: the page behind the leaf or run before, in the order leaf, its runs, next leaf. The
// first leaf is predicted to lie at the segment's base page: the bytes do not depend on where the
// segment lies, hence segments of regular layouts are equal byte by byte.
//
//   bytes = length of the six streams together, zstd(6 x length of stream, 6 x stream)
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "format/byte_stream.hpp"
#include "format/lmdb/leaf_producer.hpp"

namespace forebay::lmdb {

struct EncodedSegment {
  std::uint64_t samples = 0;
  std::uint64_t leaves = 0;
  PageNumber base = 0;
  std::vector<std::byte> bytes;
};

class SegmentEncoder {
 public:
  void add(const LeafLayout& leaf);
  std::uint64_t samples() const { return samples_; }
  std::uint64_t leaves() const { return leaves_; }
  /// What was added since the last call; at least one leaf.
  EncodedSegment finish();

 private:
  std::array<ByteWriter, 6> streams_;
  std::uint64_t samples_ = 0;
  std::uint64_t leaves_ = 0;
  PageNumber base_ = 0;
  PageNumber next_ = 0;
};

/// Hands out the leaves. What is allocated is bounded by `samples` and `leaves`.
/// Throws corrupt when the bytes do not hold exactly that many.
void decode_segment(std::span<const std::byte> bytes, PageNumber base, std::uint64_t samples,
                    std::uint64_t leaves, const LeafSink& sink);

}  // namespace forebay::lmdb
