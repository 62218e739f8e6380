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

  void add(const LeafLayout& leaf) {
    const std::size_t segments = directory_.size() - 1;
    Segment end = directory_.back();
    const Segment begin = segments == 0 ? end : directory_[segments - 1];
    const bool full = end.first_sample - begin.first_sample >= segment_samples_ ||
                      end.first_leaf - begin.first_leaf >= segment_leaves_;
    if (segments == 0 || full) directory_.push_back(end);
    leaves_.push_back({.page = leaf.page,
                       .records = leaf.records,
                       .runs = static_cast<std::uint32_t>(leaf.runs.size()),
                       .first_run = runs_.size()});
    runs_.insert(runs_.end(), leaf.runs.begin(), leaf.runs.end());
    directory_.back() = {.first_sample = end.first_sample + leaf.records,
                         .first_leaf = end.first_leaf + 1};
  }

  std::string form() const override { return "known"; }
  std::span<const Segment> directory() const override { return directory_; }
  void expand(std::size_t segment, const LeafSink& sink) override {
    const std::span runs(runs_);
    for (auto i = directory_[segment].first_leaf; i < directory_[segment + 1].first_leaf; ++i) {
      const Leaf& leaf = leaves_[i];
      sink({.page = leaf.page,
            .records = leaf.records,
            .runs = runs.subspan(leaf.first_run, leaf.runs)});
    }
  }
  std::uint64_t memory_bytes() const override {
    return directory_.capacity() * sizeof(Segment) + leaves_.capacity() * sizeof(Leaf) +
           runs_.capacity() * sizeof(LeafRun);
  }

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
