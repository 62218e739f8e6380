#include "format/lmdb/known_leaves.hpp"

namespace forebay::lmdb {

void KnownLeaves::add(const LeafLayout& leaf) {
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

void KnownLeaves::expand(std::size_t segment, const LeafSink& sink) {
  const std::span runs(runs_);
  for (auto i = directory_[segment].first_leaf; i < directory_[segment + 1].first_leaf; ++i) {
    const Leaf& leaf = leaves_[i];
    sink({.page = leaf.page,
          .records = leaf.records,
          .runs = runs.subspan(leaf.first_run, leaf.runs)});
  }
}

std::uint64_t KnownLeaves::memory_bytes() const {
  return directory_.capacity() * sizeof(Segment) + leaves_.capacity() * sizeof(Leaf) +
         runs_.capacity() * sizeof(LeafRun);
}

}  // namespace forebay::lmdb
