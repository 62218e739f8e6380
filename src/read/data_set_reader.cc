#include "read/data_set_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/clock.hpp"

namespace forebay {
namespace {

// Assembled values begin where vector instructions like it.
constexpr std::uint64_t kAlignment = 64;
// Copies that are worth a thread's attention.
constexpr std::uint64_t kCopiedBytes = std::uint64_t{1} << 20;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Copies `key` to the begin of `room`, which becomes shorter by it.
std::span<const std::byte> put_key(std::span<const std::byte> key, std::span<std::byte>& room) {
  if (key.empty()) return {};
  std::memcpy(room.data(), key.data(), key.size());
  const auto put = room.first(key.size());
  room = room.subspan(key.size());
  return put;
}

/// Where values lie behind each other.
struct Layout {
  std::uint64_t bytes = 0;  ///< of all
  std::vector<std::uint64_t> begins;
  std::vector<std::uint64_t> lengths;
};

Layout lay_out(PlanValues values, std::size_t count) {
  Layout layout;
  layout.begins.reserve(count);
  layout.lengths.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    layout.begins.push_back(layout.bytes);
    layout.lengths.push_back(values.bytes(i));
    layout.bytes += aligned(layout.lengths.back());
  }
  return layout;
}

}  // namespace

DataSetReader::DataSetReader(DataSetParts parts, ReadingList& list, Stage& stage, int root,
                             Turns& turns)
    : parts_(std::move(parts)),
      in_place_(parts_.data->facts().values == DataSetFacts::Values::in_file),
      scratch_is_it_(parts_.data->facts().values == DataSetFacts::Values::in_scratch),
      pool_("fb-decode", in_place_ && !parts_.data->facts().decodes ? 1 : parts_.threads,
            parts_.placement),
      list_(list),
      stage_(stage),
      root_(root),
      turns_(turns),
      decoded_before_(parts_.data->counters()) {}

DataSetReader::~DataSetReader() {
  parts_.bulk->cancel();
  if (!parts_.bulk->abandoned()) return;
  for (PrivateMemory& memory : memory_) memory.abandon();
}

void DataSetReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    current_ = next_ ? std::move(next_) : prepare(part);
    bring(*current_, next);
  } catch (const Error& error) {
    parts_.bulk->cancel();
    // A file that was cut ends too early, and one that is written to does not decode: that it was
    // changed is the true cause.
    const bool of_bytes = error.kind() == ErrorKind::io || error.kind() == ErrorKind::corrupt;
    if (of_bytes) parts_.data->check_unchanged();
    throw;
  } catch (...) {
    parts_.bulk->cancel();
    throw;
  }
}

// In the order of the files, however the samples are wanted.
std::unique_ptr<DataSetReader::Transfer> DataSetReader::prepare(const WindowPart& part) {
  const std::int64_t started = now_ns();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;  // sample, entry
  for (const SampleRun& run : list_.runs(part)) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      wanted.emplace_back(run.sample + i, run.entry + i);
    }
  }
  std::ranges::sort(wanted);
  auto transfer = std::make_unique<Transfer>();
  transfer->part = part;
  for (const auto& [sample, entry] : wanted) {
    transfer->ids.push_back(sample);
    transfer->entries.push_back(entry);
  }
  if (!wanted.empty()) cut(*transfer, 0, wanted.size());
  totals_.seek_ns += now_ns() - started;
  return transfer;
}

/// Two slices are in memory at a time, and one is decoded, where decoding is not into the stage.
bool DataSetReader::fits(std::uint64_t bytes, std::uint64_t scratch) const {
  if (in_place_) return true;
  const std::uint64_t most = parts_.private_bytes;
  if (scratch_is_it_ || !parts_.data->facts().decodes) return bytes <= most / 2;
  return bytes <= most / 4 && scratch <= most / 2;
}

void DataSetReader::cut(Transfer& transfer, std::size_t first, std::size_t count) {
  auto plan = parts_.data->plan(std::span(transfer.ids).subspan(first, count));
  std::vector<PlacedExtent> reads = place_extents(plan->extents(), parts_.gap_bytes);
  if (fits(bytes_of(reads), plan->scratch_bytes())) {
    transfer.slices.push_back({.first = first, .plan = std::move(plan), .reads = std::move(reads)});
    return;
  }
  if (count == 1) {
    throw Error(
        ErrorKind::usage,
        fmt::format("one sample takes reads of {} bytes, which {} bytes of memory beside the "
                    "stage do not hold twice",
                    bytes_of(reads), parts_.private_bytes),
        "raise --stage-bytes, or lower --roots or --gap-bytes", {.sample = transfer.ids[first]});
  }
  cut(transfer, first, count / 2);
  cut(transfer, first + count / 2, count - count / 2);
}

void DataSetReader::bring(Transfer& transfer, const std::optional<WindowPart>& next) {
  std::optional<Turns::Turn> turn(std::in_place, turns_);  // one for each part
  begin(transfer);
  std::uint64_t bytes = 0;
  if (transfer.slices.empty() && next) next_ = prepare(*next);
  for (std::size_t i = 0; i < transfer.slices.size(); ++i) {
    const Slice& slice = transfer.slices[i];
    const bool last = i + 1 == transfer.slices.size();
    if (i == 0 && !transfer.reading) start(transfer, transfer.slices[0]);
    if (last && next) next_ = prepare(*next);
    finish();
    bytes += slice.memory.size();
    if (last) {
      turn->count(bytes);
      turn.reset();
      start_next();
    } else {
      start(transfer, transfer.slices[i + 1]);
    }
    unpack(transfer, slice);
  }
}

void DataSetReader::begin(Transfer& transfer) {
  if (std::exchange(transfer.begun, true)) return;
  if (transfer.part.phase != Phase::rest) stage_.begin(root_, transfer.part.window);
}

// What may have to wait for other roots, who may wait for this one, has to wait.
void DataSetReader::start_next() {
  if (!next_ || next_->slices.empty() || !turns_.unlimited()) return;
  if (in_place_) {
    if (!stage_.free(next_->part.window)) return;
    begin(*next_);
  }
  start(*next_, next_->slices[0]);
  next_->reading = true;
}

void DataSetReader::start(Transfer& transfer, Slice& slice) {
  const std::int64_t started = now_ns();
  const std::uint64_t bytes = bytes_of(slice.reads);
  if (in_place_) {
    slice.memory = stage_.take(root_, transfer.part.window, bytes);
  } else {
    slice.memory = memory_[half_].get(bytes);
    half_ = 1 - half_;
  }
  slice.requests = requests_of(*parts_.data, slice.reads, slice.memory);
  parts_.bulk->start(slice.requests);
  totals_.read_ns += now_ns() - started;
}

void DataSetReader::finish() {
  const std::int64_t started = now_ns();
  parts_.bulk->finish([](std::size_t) {});
  totals_.read_ns += now_ns() - started;
}

void DataSetReader::unpack(const Transfer& transfer, const Slice& slice) {
  const std::int64_t started = now_ns();
  for (const PlacedExtent& read : slice.reads) {
    if (touched_.empty() || touched_.back() != read.extent.file) {
      touched_.push_back(read.extent.file);
    }
  }
  const PlacedBytes bytes(slice.reads, slice.memory);
  const std::uint64_t scratch_bytes = slice.plan->scratch_bytes();
  if (in_place_) {
    decode(slice, bytes, {});  // which only checks them
    point_at(transfer, slice, bytes, {});
  } else if (scratch_is_it_) {
    const auto scratch = stage_.take(root_, transfer.part.window, scratch_bytes);
    decode(slice, bytes, scratch);
    point_at(transfer, slice, bytes, scratch);
  } else {
    const auto scratch = scratch_.get(scratch_bytes);
    decode(slice, bytes, scratch);
    assemble(transfer, slice, bytes, scratch);
  }
  totals_.decode_ns += now_ns() - started;
}

void DataSetReader::decode(const Slice& slice, const FileBytes& bytes,
                           std::span<std::byte> scratch) {
  pool_.run(slice.plan->units(), [&](std::size_t unit) {
    DecodeSpace space;
    {
      const std::lock_guard lock(spaces_mutex_);
      if (!spaces_.empty()) {
        space = std::move(spaces_.back());
        spaces_.pop_back();
      }
    }
    slice.plan->decode(unit, bytes, scratch, space);
    const std::lock_guard lock(spaces_mutex_);
    spaces_.push_back(std::move(space));
  });
}

/// Room in the stage for what the samples are called, which lies apart from values.
std::span<std::byte> DataSetReader::take_keys(const Transfer& transfer, const Slice& slice,
                                              const FileBytes& data) {
  if (!parts_.data->facts().named) return {};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < slice.plan->size(); ++i) {
    bytes += slice.plan->key(i, data).size();
  }
  return stage_.take(root_, transfer.part.window, bytes);
}

void DataSetReader::point_at(const Transfer& transfer, const Slice& slice, const FileBytes& bytes,
                             std::span<const std::byte> scratch) {
  const PlanValues values(*parts_.data, *slice.plan, bytes, scratch);
  std::span<std::byte> keys = take_keys(transfer, slice, bytes);
  for (std::size_t i = 0; i < slice.plan->size(); ++i) {
    const std::size_t at = slice.first + i;
    stage_.place(transfer.part.window, transfer.entries[at], transfer.ids[at],
                 put_key(slice.plan->key(i, bytes), keys), values.in_place(i));
  }
}

void DataSetReader::assemble(const Transfer& transfer, const Slice& slice, const FileBytes& bytes,
                             std::span<const std::byte> scratch) {
  const std::size_t count = slice.plan->size();
  const std::uint64_t window = transfer.part.window;
  const Layout layout = lay_out({*parts_.data, *slice.plan, bytes, scratch}, count);
  const auto room = stage_.take(root_, window, layout.bytes);
  const auto value = [&](std::size_t i) {
    return room.subspan(layout.begins[i], layout.lengths[i]);
  };
  const auto blocks = std::min<std::size_t>(count, layout.bytes / kCopiedBytes + 1);
  pool_.run(blocks, [&](std::size_t block) {
    PlanValues values(*parts_.data, *slice.plan, bytes, scratch);
    for (std::size_t i = count * block / blocks; i < count * (block + 1) / blocks; ++i) {
      values.write(i, value(i));
    }
  });
  std::span<std::byte> keys = take_keys(transfer, slice, bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = slice.first + i;
    stage_.place(window, transfer.entries[at], transfer.ids[at],
                 put_key(slice.plan->key(i, bytes), keys), value(i));
  }
}

void DataSetReader::check_unchanged() {
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const std::uint32_t file : touched_) parts_.data->check_unchanged(file);
  touched_.clear();
}

ReadTotals DataSetReader::totals() const {
  ReadTotals totals = totals_;
  totals.turn_seconds = turns_.waited_seconds();
  const BulkCounters bulk = parts_.bulk->counters();
  totals.source.requests = bulk.requests;
  totals.source.bytes_requested = bulk.bytes;
  const DecodeCounters decoded = parts_.data->counters();
  totals.chunks_decoded = decoded.chunks - decoded_before_.chunks;
  totals.bytes_decoded = decoded.bytes_decoded - decoded_before_.bytes_decoded;
  return totals;
}

}  // namespace forebay
