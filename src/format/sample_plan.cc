// The plan of a list of ids: ids become ascending rows of each part, rows become extents and units.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "forebay/error.hpp"
#include "format/sample_source.hpp"

namespace forebay {
namespace {

// Decoded fields start where vector instructions like it.
constexpr std::uint64_t kAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool ascend(std::span<const std::uint64_t> ids) {
  return std::ranges::adjacent_find(ids, std::greater_equal{}) == ids.end();
}

void require_ids(std::span<const std::uint64_t> ids, const SampleSource& source) {
  for (const std::uint64_t id : ids) {
    if (id < source.entries()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("there is no sample {}: the data set has {}", id, source.entries()),
                "name samples from 0 on", {.file = source.path()});
  }
}

/// Sorts by file and offset, and joins what touches or overlaps.
void join(std::vector<FileExtent>& extents) {
  std::ranges::sort(extents, {}, [](const FileExtent& e) { return std::tuple(e.file, e.offset); });
  std::size_t kept = 0;
  for (const FileExtent& extent : extents) {
    FileExtent* last = kept == 0 ? nullptr : &extents[kept - 1];
    if (last != nullptr && last->file == extent.file &&
        extent.offset <= last->offset + last->length) {
      last->length = std::max(last->length, extent.offset + extent.length - last->offset);
    } else {
      extents[kept++] = extent;
    }
  }
  extents.resize(kept);
}

}  // namespace

SamplePlan::SamplePlan(const SampleSource& source, std::span<const std::uint64_t> ids)
    : source_(&source), ids_(ids.size()) {
  require_ids(ids, source);
  std::vector<std::uint64_t> sorted;
  std::span<const std::uint64_t> rest = ids;
  if (!ascend(ids)) {
    sorted.assign(ids.begin(), ids.end());
    std::ranges::sort(sorted);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    slots_.reserve(ids.size());
    for (const std::uint64_t id : ids) {
      slots_.push_back(std::ranges::lower_bound(sorted, id) - sorted.begin());
    }
    rest = sorted;
  }
  const auto& first = source.first_;
  while (!rest.empty()) {
    // The last part that begins at or before the id; empty parts begin where their follower does.
    const auto after = std::ranges::upper_bound(first, rest.front());
    const auto part = static_cast<std::size_t>(after - first.begin()) - 1;
    const auto end = std::ranges::lower_bound(rest, first[part + 1]);
    add_part(part, rest.first(static_cast<std::size_t>(end - rest.begin())));
    rest = rest.subspan(static_cast<std::size_t>(end - rest.begin()));
  }
  join(extents_);
}

void SamplePlan::add_part(std::size_t part, std::span<const std::uint64_t> ids) {
  PartRows rows{.part = part, .first_slot = 0, .rows = {ids.begin(), ids.end()}};
  if (!parts_.empty()) rows.first_slot = parts_.back().first_slot + parts_.back().rows.size();
  for (std::uint64_t& row : rows.rows) row -= source_->first_[part];
  add_fields(rows);
  parts_.push_back(std::move(rows));
}

void SamplePlan::add_fields(PartRows& rows) {
  const SamplePart& part = source_->parts_[rows.part];
  std::vector<DecodeUnit> units;
  for (std::size_t f = 0; f < part.fields.size(); ++f) {
    const FieldStorage& storage = *part.fields[f].storage;
    storage.extents(rows.rows, part.fields[f].file, extents_);
    if (storage.in_place()) {
      rows.scratch.push_back(kInPlace);
      continue;
    }
    units.clear();
    storage.units(rows.rows, units);
    for (const DecodeUnit& unit : units) {
      units_.push_back({.part_rows = parts_.size(), .field = f, .rows = unit});
    }
    rows.scratch.push_back(scratch_bytes_);
    const std::uint64_t row_bytes = source_->schema_.fields[f].bytes();
    if (row_bytes > (UINT64_MAX / 2 - scratch_bytes_ - kAlignment) / rows.rows.size()) {
      throw Error(ErrorKind::usage, "so many samples do not fit into memory",
                  "read fewer at a time", {.file = source_->path()});
    }
    scratch_bytes_ += aligned(rows.rows.size() * row_bytes);
  }
}

void SamplePlan::decode(std::size_t unit, const FileBytes& bytes, std::span<std::byte> scratch,
                        DecodeSpace& space) const {
  const Unit& work = units_[unit];
  const PartRows& rows = parts_[work.part_rows];
  const PartField& field = source_->parts_[rows.part].fields[work.field];
  const std::uint64_t row_bytes = source_->schema_.fields[work.field].bytes();
  const auto out = scratch.subspan(rows.scratch[work.field], rows.rows.size() * row_bytes);
  try {
    const std::uint64_t decoded =
        field.storage->decode(work.rows, rows.rows, field.file, bytes, out, space);
    if (decoded == 0) return;
    source_->chunks_.fetch_add(1, std::memory_order_relaxed);
    source_->bytes_decoded_.fetch_add(decoded, std::memory_order_relaxed);
  } catch (const Error& error) {
    throw error.within({.file = source_->files_[field.file]->path(),
                        .sample = source_->first_[rows.part] + rows.rows[work.rows.first]});
  }
}

void SamplePlan::decode_all(const FileBytes& bytes, std::span<std::byte> scratch) const {
  DecodeSpace space;
  for (std::size_t unit = 0; unit < units(); ++unit) decode(unit, bytes, scratch, space);
}

std::span<const std::byte> SamplePlan::value(std::size_t position, std::size_t field,
                                             const FileBytes& bytes,
                                             std::span<const std::byte> scratch) const {
  const std::uint64_t slot = slot_of(position);
  const auto after = std::ranges::upper_bound(parts_, slot, {}, &PartRows::first_slot);
  const PartRows& rows = *(after - 1);
  const std::uint64_t within = slot - rows.first_slot;
  const PartField& stored = source_->parts_[rows.part].fields[field];
  if (rows.scratch[field] == kInPlace) {
    return stored.storage->value(rows.rows[within], stored.file, bytes);
  }
  const std::uint64_t row_bytes = source_->schema_.fields[field].bytes();
  return scratch.subspan(rows.scratch[field] + within * row_bytes, row_bytes);
}

}  // namespace forebay
