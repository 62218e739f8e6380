// The leaves of a tree in plain vectors: what a walk found, or what a test wants to be believed.
#pragma once

#include <string>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"

namespace forebay::lmdb {

class KnownLeaves final : public LeafProducer {
 public:
  /// Segments close at either number; small ones make small tests reach every boundary.
  explicit KnownLeaves(std::uint64_t segment_samples = kSegmentSamples,
                       std::uint64_t segment_leaves = kSegmentLeaves)
      : segment_samples_(segment_samples), segment_leaves_(segment_leaves) {}

  void add(const LeafLayout& leaf);

  std::string form() const override { return "known"; }
  std::span<const Segment> directory() const override { return directory_; }
  void expand(std::size_t segment, const LeafSink& sink) override;
  std::uint64_t memory_bytes() const override;

 private:
  struct Leaf {
    PageNumber page;
    std::uint32_t records;
    std::uint32_t runs;
    std::size_t first_run;
  };

  std::uint64_t segment_samples_;
  std::uint64_t segment_leaves_;
  std::vector<Segment> directory_{Segment{}};
  std::vector<Leaf> leaves_;
  std::vector<LeafRun> runs_;
};

}  // namespace forebay::lmdb
