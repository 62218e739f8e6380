#include "format/convention/record_map.hpp"

#include <xxhash.h>

#include <algorithm>

namespace forebay::convention {

RecordMap RecordMap::of_range(std::uint64_t first, std::uint64_t count) {
  RecordMap map;
  map.add_range(first, count);
  return map;
}

void RecordMap::add_range(std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  const bool goes_on =
      !runs_.empty() && runs_.back().record + (samples_ - runs_.back().sample) == first;
  if (!goes_on) runs_.push_back({.sample = samples_, .record = first});
  samples_ += count;
}

void RecordMap::append(const RecordMap& other, std::uint64_t shift) {
  other.for_each_run(0, other.samples(), [&](std::uint64_t record, std::uint64_t count) {
    add_range(record + shift, count);
  });
}

void RecordMap::finish() {
  if (runs_.size() * sizeof(Run) > samples_ * sizeof(std::uint64_t)) {
    std::vector<std::uint64_t> records;
    records.reserve(samples_);
    for_each_run(0, samples_, [&](std::uint64_t record, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) records.push_back(record + i);
    });
    records_ = std::move(records);
    runs_ = {};
  }
  runs_.shrink_to_fit();
}

RecordMap::Stretch RecordMap::stretch_at(std::uint64_t sample, std::uint64_t most) const {
  if (!records_.empty()) {
    std::uint64_t count = 1;
    while (count < most && records_[sample + count] == records_[sample] + count) ++count;
    return {records_[sample], count};
  }
  const auto after = std::ranges::upper_bound(runs_, sample, {}, &Run::sample);
  const Run& run = *(after - 1);
  const std::uint64_t end = after == runs_.end() ? samples_ : after->sample;
  return {run.record + (sample - run.sample), std::min(most, end - sample)};
}

std::uint64_t RecordMap::record(std::uint64_t sample) const { return stretch_at(sample, 1).record; }

bool RecordMap::is_plain(std::uint64_t records) const {
  if (samples_ != records) return false;
  return samples_ == 0 || stretch_at(0, samples_).count == samples_;
}

std::uint64_t RecordMap::memory_bytes() const {
  return runs_.size() * sizeof(Run) + records_.size() * sizeof(std::uint64_t);
}

std::uint64_t RecordMap::digest() const {
  XXH64_hash_t digest = XXH3_64bits(&samples_, sizeof samples_);
  for_each_run(0, samples_, [&](std::uint64_t record, std::uint64_t count) {
    const std::uint64_t pair[] = {record, count};
    digest = XXH3_64bits_withSeed(pair, sizeof pair, digest);
  });
  return digest;
}

}  // namespace forebay::convention
