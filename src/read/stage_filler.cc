#include "read/stage_filler.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "forebay/packed_parts.hpp"

namespace forebay {
namespace {

using Bytes = std::span<const std::byte>;

// Values that were put together begin where vector instructions like it.
constexpr std::uint64_t kAlignment = 64;
// Copies that are worth a thread's attention.
constexpr std::uint64_t kCopiedBytes = std::uint64_t{1} << 20;
// So often an engine that has no thread of its own goes on beside the work on samples.
constexpr std::size_t kSamplesBetween = 128;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool lies_in(Bytes memory, Bytes bytes) {
  const std::less<> before;
  return !before(bytes.data(), memory.data()) &&
         !before(memory.data() + memory.size(), bytes.data() + bytes.size());
}

/// Whether `bytes` lie in one of `maps`, which ascend.
bool lies_in_any(std::span<const Bytes> maps, Bytes bytes) {
  if (bytes.empty()) return true;
  const auto after = std::ranges::upper_bound(maps, bytes.data(), std::less<>(),
                                              [](const Bytes& map) { return map.data(); });
  return after != maps.begin() && lies_in(*(after - 1), bytes);
}

/// The parts of some samples, found once.
struct FoundParts {
  std::size_t of_each = 0;
  std::vector<Bytes> keys, parts;
  std::vector<bool> stays;  ///< of each part: a value may tell where it is; empty: of none
  /// Of each sample: its value tells where parts are, and those that do not stay follow it.
  std::vector<bool> told;
  /// Where each value begins, with its key behind it; and the end of all.
  std::vector<std::uint64_t> begins;

  std::span<const Bytes> parts_of(std::size_t position) const {
    return std::span(parts).subspan(position * of_each, of_each);
  }
  std::uint64_t value_bytes(const DataSetFacts& facts, std::size_t position) const {
    return told[position] ? told_parts_bytes(of_each)
                          : forebay::value_bytes(facts, parts_of(position));
  }
  /// What parts of a sample that do not stay take.
  std::uint64_t copied_bytes(std::size_t position) const {
    std::uint64_t bytes = 0;
    for (std::size_t p = 0; p < of_each; ++p) {
      if (!stays[position * of_each + p]) bytes += parts[position * of_each + p].size();
    }
    return bytes;
  }
  /// The value of which `copies` is the room for parts that do not stay.
  void write(const DataSetFacts& facts, std::size_t position, std::span<std::byte> value,
             std::span<std::byte> copies) {
    if (!told[position]) return write_value(facts, parts_of(position), value);
    const auto mine = std::span(parts).subspan(position * of_each, of_each);
    for (std::size_t p = 0; p < of_each; ++p) {
      if (stays[position * of_each + p] || mine[p].empty()) continue;
      std::memcpy(copies.data(), mine[p].data(), mine[p].size());
      mine[p] = copies.first(mine[p].size());
      copies = copies.subspan(mine[p].size());
    }
    tell_parts(mine, value);
  }
};

FoundParts find_parts(const DataSetFacts& facts, const FilledPart& part, Bytes scratch) {
  const std::size_t count = part.plan.size();
  FoundParts found{.of_each = facts.part_count()};
  found.keys.resize(count);
  found.parts.resize(count * found.of_each);
  part.plan.unpack(found.of_each, part.bytes, scratch, [&](const FoundSample& sample) {
    found.keys[sample.position] = sample.key;
    std::ranges::copy(sample.parts, found.parts.begin() + static_cast<std::ptrdiff_t>(
                                                              sample.position * found.of_each));
  });
  found.told.resize(count);
  if (!part.told_of.empty() && !facts.parts.empty()) {
    for (const Bytes bytes : found.parts) found.stays.push_back(lies_in_any(part.told_of, bytes));
    for (std::size_t i = 0; i < count; ++i) {
      // Small ones take less room as they are.
      const std::uint64_t packed = found.value_bytes(facts, i);
      found.told[i] = told_parts_bytes(found.of_each) + found.copied_bytes(i) <= packed;
    }
  }
  found.begins.reserve(count + 1);
  found.begins.push_back(0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = found.value_bytes(facts, i) + found.keys[i].size() +
                                (found.told[i] ? found.copied_bytes(i) : 0);
    found.begins.push_back(found.begins.back() + aligned(bytes));
  }
  return found;
}

}  // namespace

PlannedSamples::PlannedSamples(std::vector<SampleRun> runs) : runs_(std::move(runs)) {
  ends_.reserve(runs_.size());
  std::size_t end = 0;
  for (const SampleRun& run : runs_) ends_.push_back(end += run.count);
}

PlannedSamples PlannedSamples::part(std::size_t first, std::size_t count) const {
  std::vector<SampleRun> runs;
  std::size_t begin = 0;
  for (const SampleRun& run : runs_) {
    const std::size_t from = std::max(begin, first),
                      to = std::min(begin + run.count, first + count);
    if (from < to) {
      runs.push_back({.sample = run.sample + (from - begin),
                      .count = to - from,
                      .entry = run.entry + (from - begin)});
    }
    begin += run.count;
  }
  return PlannedSamples(std::move(runs));
}

std::vector<IdRun> PlannedSamples::ids() const {
  std::vector<IdRun> ids;
  ids.reserve(runs_.size());
  for (const SampleRun& run : runs_) ids.push_back({run.sample, run.count});
  return ids;
}

PlannedSamples::At PlannedSamples::at(std::size_t position) const {
  const auto begin_of = [this](std::size_t run) { return ends_[run] - runs_[run].count; };
  if (position < begin_of(last_)) {
    last_ = static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
  }
  while (position >= ends_[last_]) ++last_;
  const std::uint64_t inside = position - begin_of(last_);
  return {runs_[last_].sample + inside, runs_[last_].entry + inside};
}

StageFiller::StageFiller(const DataSet& data, Stage& stage, int root, unsigned threads,
                         const Placement& placement)
    : facts_(data.facts()),
      stage_(stage),
      root_(root),
      into_stage_(facts_.values == DataSetFacts::Values::in_file || facts_.parts_stay),
      pool_("fb-decode", into_stage_ && !facts_.decodes ? 1 : threads, placement) {}

void StageFiller::fill(const FilledPart& part, BulkReader& bulk) {
  const std::uint64_t scratch_bytes = part.plan.scratch_bytes();
  if (facts_.values == DataSetFacts::Values::in_file) {
    if (facts_.decodes) decode(part, {});  // which only checks
    point_at(part, {}, bulk);
  } else if (facts_.values == DataSetFacts::Values::in_scratch) {
    const auto scratch = stage_.take(root_, part.window, scratch_bytes);
    decode(part, scratch);
    point_at(part, scratch, bulk);
  } else {
    const auto scratch = scratch_.get(scratch_bytes);
    decode(part, scratch);
    put_together(part, scratch);
  }
}

void StageFiller::decode(const FilledPart& part, std::span<std::byte> scratch) {
  pool_.run(part.plan.units(), [&](std::size_t unit) {
    DecodeSpace space;
    {
      const std::lock_guard lock(spaces_mutex_);
      if (!spaces_.empty()) {
        space = std::move(spaces_.back());
        spaces_.pop_back();
      }
    }
    part.plan.decode(unit, part.bytes, scratch, space);
    const std::lock_guard lock(spaces_mutex_);
    spaces_.push_back(std::move(space));
  });
}

void StageFiller::point_at(const FilledPart& part, Bytes scratch, BulkReader& bulk) {
  const auto in_stage = [&](Bytes found) {
    const bool there = found.empty() || lies_in(part.memory, found) || lies_in(scratch, found);
    return there ? found : stage_.copy(root_, part.window, found);
  };
  std::size_t samples = 0;
  part.plan.unpack(kPartsInPlace, part.bytes, scratch, [&](const FoundSample& found) {
    const PlannedSamples::At at = part.samples.at(found.position);
    stage_.place(part.window, at.entry, at.sample, in_stage(found.key),
                 in_stage(value_in_place(facts_, found.parts)));
    if (++samples % kSamplesBetween == 0) bulk.advance();
  });
}

void StageFiller::put_together(const FilledPart& part, Bytes scratch) {
  FoundParts found = find_parts(facts_, part, scratch);
  const std::size_t count = part.plan.size();
  const std::uint64_t bytes = found.begins.back();
  const auto room = stage_.take(root_, part.window, bytes);
  const auto blocks = std::min<std::size_t>(count, bytes / kCopiedBytes + 1);
  struct Place {
    std::span<std::byte> value, key, copies;
  };
  const auto place_of = [&](std::size_t i) -> Place {
    const auto place = room.subspan(found.begins[i], found.begins[i + 1] - found.begins[i]);
    const std::uint64_t value = found.value_bytes(facts_, i), key = found.keys[i].size();
    return {place.first(value), place.subspan(value, key), place.subspan(value + key)};
  };
  pool_.run(blocks, [&](std::size_t block) {
    for (std::size_t i = count * block / blocks; i < count * (block + 1) / blocks; ++i) {
      const Place to = place_of(i);
      found.write(facts_, i, to.value, to.copies);
      if (!to.key.empty()) std::memcpy(to.key.data(), found.keys[i].data(), to.key.size());
    }
  });
  for (std::size_t i = 0; i < count; ++i) {
    const Place to = place_of(i);
    const PlannedSamples::At at = part.samples.at(i);
    stage_.place(part.window, at.entry, at.sample, to.key, to.value);
  }
}

}  // namespace forebay
