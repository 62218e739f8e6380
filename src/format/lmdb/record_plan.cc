#include "format/lmdb/record_plan.hpp"

#include <algorithm>
#include <tuple>

namespace forebay::lmdb {
namespace {

std::size_t count_of(std::span<const IdRun> runs) {
  std::uint64_t count = 0;
  for (const IdRun& run : runs) count += run.count;
  return count;
}

/// By file and offset; runs of records that are not neighbours may have named a leaf more than
/// once.
void sort(std::vector<FileExtent>& extents) {
  const auto place = [](const FileExtent& e) { return std::tuple(e.file, e.offset); };
  if (!std::ranges::is_sorted(extents, {}, place)) std::ranges::sort(extents, {}, place);
  extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
}

}  // namespace

RecordPlan::RecordPlan(std::shared_ptr<LockedIndex> index, std::span<const IdRun> runs)
    : Plan(count_of(runs)), index_(std::move(index)) {
  runs_.reserve(runs.size());
  std::size_t position = 0;
  for (const IdRun& run : runs) {
    runs_.push_back({.ids = run, .position = position});
    position += run.count;
  }
}

// Whoever uses the file where it is mapped does not need them.
void RecordPlan::find_extents() const {
  const std::scoped_lock lock(index_->mutex);
  if (found_) return;
  extents_.clear();
  for (const PlannedRun& run : runs_) {
    index_->index->extents(run.ids.first, run.ids.count, extents_);
  }
  named_ = extents_.size();
  sort(extents_);
  found_ = true;
}

Record RecordPlan::record(std::size_t position, const FileBytes& bytes) const {
  const auto after = std::ranges::upper_bound(runs_, position, {}, &PlannedRun::position);
  const PlannedRun& run = *(after - 1);
  Record found;
  const std::scoped_lock lock(index_->mutex);
  index_->index->unpack(run.ids.first + (position - run.position), 1, bytes,
                        [&found](const Record& record) { found = record; });
  return found;
}

std::span<const std::byte> RecordPlan::part(std::size_t position, std::size_t,
                                            const FileBytes& bytes,
                                            std::span<const std::byte>) const {
  return record(position, bytes).value;
}

std::span<const std::byte> RecordPlan::key(std::size_t position, const FileBytes& bytes) const {
  return record(position, bytes).key;
}

void RecordPlan::unpack(std::size_t, const FileBytes& bytes, std::span<const std::byte>,
                        const FoundSink& sink) const {
  const std::scoped_lock lock(index_->mutex);
  for (const PlannedRun& run : runs_) {
    std::size_t position = run.position;
    index_->index->unpack(run.ids.first, run.ids.count, bytes, [&](const Record& record) {
      sink({.position = position++, .key = record.key, .parts = {&record.value, 1}});
    });
  }
}

}  // namespace forebay::lmdb
