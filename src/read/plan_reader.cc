#include "read/plan_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/clock.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

std::vector<std::span<const std::byte>> maps_of(
    std::span<const std::shared_ptr<const File>> files) {
  std::vector<std::span<const std::byte>> maps;
  for (const auto& file : files) maps.push_back(file->map());
  return maps;
}

}  // namespace

PlanReader::PlanReader(PlanReaderParts parts, ReadingList& list, Stage& stage, int root,
                       Turns& turns)
    : parts_(std::move(parts)),
      maps_(maps_of(parts_.mapped)),
      filler_(*parts_.data, stage, root, parts_.threads, parts_.placement),
      kept_(parts_.keep_bytes),
      list_(list),
      stage_(stage),
      root_(root),
      turns_(turns),
      before_(parts_.data->counters()) {
  if (!parts_.in_place) return;
  by_address_ = maps_of(parts_.mapped);
  std::ranges::sort(by_address_, std::less<>(), [](const auto& map) { return map.data(); });
  if (parts_.mapped.size() == 1) stage_.extend(parts_.mapped[0]->map(), parts_.mapped[0]);
}

PlanReader::~PlanReader() {
  cancel();
  if (!abandoned()) return;
  for (PrivateMemory& memory : memory_) memory.abandon();
}

void PlanReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    current_ = next_ ? std::move(next_) : prepare(part);
    try {
      deliver(*current_, next);
    } catch (const IndexMismatch& mismatch) {
      give_up_index(mismatch, *current_);
      deliver(*current_, {});
    }
  } catch (const Error& error) {
    cancel();
    // A file that was cut ends too early, and one that is written to does not decode: that it was
    // changed is the true cause.
    const bool of_bytes = error.kind() == ErrorKind::io || error.kind() == ErrorKind::corrupt;
    // (Unless the file system does not answer: it would not answer that question either.)
    if (of_bytes && !abandoned()) parts_.data->check_unchanged();
    throw;
  } catch (...) {
    cancel();
    throw;
  }
}

void PlanReader::cancel() const {
  parts_.bulk->cancel();
  if (parts_.own) parts_.own->cancel();
  if (parts_.filler) parts_.filler->cancel();
}

bool PlanReader::abandoned() const {
  return parts_.bulk->abandoned() || (parts_.own && parts_.own->abandoned());
}

void PlanReader::leave() {
  cancel();
  if (parts_.leave) parts_.leave();
}

// In the order of the samples, which is mostly that of the files, however they are wanted; but
// where they are looked up one by one anyway, as they are drawn: so they come into the caches.
std::unique_ptr<PlanReader::Transfer> PlanReader::prepare(const WindowPart& part) {
  const std::int64_t started = now_ns();
  if (parts_.prepare) parts_.prepare(part);
  auto transfer = std::make_unique<Transfer>();
  transfer->part = part;
  std::vector<SampleRun> runs = list_.runs(part);
  if (!parts_.data->facts().keys_in_bytes) std::ranges::stable_sort(runs, {}, &SampleRun::sample);
  transfer->samples = PlannedSamples(std::move(runs));
  totals_.seek_ns += now_ns() - started;
  return transfer;
}

void PlanReader::plan(Transfer& transfer) {
  if (!transfer.slices.empty()) return;
  const std::int64_t started = now_ns();
  transfer.in_memory = !parts_.mapped.empty() && is_in_memory(transfer);
  transfer.from_map = transfer.in_memory || parts_.filler;
  cut(transfer, transfer.samples);
  totals_.seek_ns += now_ns() - started;
}

// A few samples tell. What is missing all the same is read by the system when it is used, which is
// slow, but right.
bool PlanReader::is_in_memory(const Transfer& transfer) const {
  constexpr std::size_t kProbes = 16;
  const std::size_t samples = transfer.samples.size(), probes = std::min(samples, kProbes);
  for (std::size_t probe = 0; probe < probes; ++probe) {
    const IdRun one{transfer.samples.at(samples * probe / probes).sample, 1};
    const auto plan = parts_.data->plan_runs({&one, 1});
    const bool cached = std::ranges::all_of(plan->extents(), [this](const FileExtent& extent) {
      return in_page_cache(*parts_.mapped[extent.file], extent.offset, extent.length);
    });
    if (!cached) return false;
  }
  return true;
}

PlanReader::Slice PlanReader::slice_of(Transfer& transfer, PlannedSamples samples) {
  Slice slice{.samples = std::move(samples), .plan = nullptr, .reads = {}};
  slice.plan = parts_.data->plan_runs(slice.samples.ids());
  if (transfer.in_memory) return slice;
  const auto wanted = leave_out_kept(transfer, *slice.plan);
  const auto& extents = kept_.enabled() ? wanted : slice.plan->extents();
  slice.reads = place_extents(extents, parts_.gap_bytes);
  // Gaps take room too.
  const bool in_stage = filler_.reads_into_stage() && !transfer.from_map;
  if (in_stage && bytes_of(slice.reads) > stage_.room()) slice.reads = place_extents(extents, 0);
  if (in_stage && points_at_records() && bytes_of(slice.reads) > stage_.room()) {
    // The system reads it when it is used: slower, but it takes no room.
    transfer.in_memory = transfer.from_map = true;
    slice.reads.clear();
  }
  return slice;
}

/// Whether values that lie in the mapped file take nothing of the stage.
bool PlanReader::points_at_records() const {
  const DataSetFacts& facts = parts_.data->facts();
  return parts_.in_place && facts.keys_in_bytes && facts.values == DataSetFacts::Values::in_file;
}

/// Two slices are in memory at a time, and one is decoded, where decoding is not into the stage.
bool PlanReader::fits(const Slice& slice) const {
  if (filler_.reads_into_stage()) return true;
  const DataSetFacts& facts = parts_.data->facts();
  const std::uint64_t most = parts_.private_bytes, bytes = bytes_of(slice.reads);
  if (facts.values == DataSetFacts::Values::in_scratch || !facts.decodes) return bytes <= most / 2;
  return bytes <= most / 4 && slice.plan->scratch_bytes() <= most / 2;
}

void PlanReader::cut(Transfer& transfer, PlannedSamples samples) {
  const std::size_t count = samples.size();
  Slice slice = slice_of(transfer, std::move(samples));
  if (fits(slice)) {
    transfer.slices.push_back(std::move(slice));
    return;
  }
  if (count == 1) {
    throw Error(
        ErrorKind::usage,
        fmt::format("one sample takes reads of {} bytes and {} bytes once they are decoded, which "
                    "do not fit into a part of the {} bytes of memory beside the stage",
                    bytes_of(slice.reads), slice.plan->scratch_bytes(), parts_.private_bytes),
        "raise --stage-bytes, or lower --roots or --gap-bytes",
        {.sample = slice.samples.at(0).sample});
  }
  cut(transfer, slice.samples.part(0, count / 2));
  cut(transfer, slice.samples.part(count / 2, count - count / 2));
}

/// What is not there yet; empty where nothing is kept.
std::vector<FileExtent> PlanReader::leave_out_kept(Transfer& transfer, const Plan& plan) {
  std::vector<FileExtent> wanted;
  if (!kept_.enabled()) return wanted;
  transfer.to_keep.clear();
  for (const FileExtent& extent : plan.extents()) {
    if (extent.common) {
      if (kept_.holds(extent)) continue;  // or the transfer before this one brings it
      if (kept_.promise(extent)) transfer.to_keep.push_back(extent);
    }
    wanted.push_back(extent);
  }
  return wanted;
}

void PlanReader::deliver(Transfer& transfer, const std::optional<WindowPart>& next) {
  plan(transfer);
  std::optional<Turns::Turn> turn;
  if (!std::exchange(transfer.had_turn, true)) turn.emplace(turns_);  // one for each part
  begin(transfer);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < transfer.slices.size(); ++i) {
    const Slice& slice = transfer.slices[i];
    const bool last = i + 1 == transfer.slices.size();
    if (i == 0 && !transfer.reading) start(transfer, transfer.slices[0]);
    if (last && next && !parts_.prepare) {
      next_ = prepare(*next);
      plan(*next_);
    }
    finish(transfer);
    bytes += bytes_of(slice.reads);
    if (last) {
      if (turn) turn->count(bytes);
      turn.reset();
      start_next();
    } else {
      start(transfer, transfer.slices[i + 1]);
    }
    fill(transfer, slice);
  }
}

void PlanReader::begin(Transfer& transfer) {
  if (std::exchange(transfer.begun, true)) return;
  const std::uint64_t window = transfer.part.window;
  if (transfer.mark) return stage_.rewind(window, *transfer.mark);
  if (transfer.part.phase != Phase::rest) stage_.begin(root_, window);
  transfer.mark = stage_.mark(window);
}

// What may have to wait for other roots, who may wait for this one, has to wait.
void PlanReader::start_next() {
  if (!next_ || !turns_.unlimited()) return;
  if (filler_.reads_into_stage()) {
    if (!stage_.free(next_->part.window)) return;
    begin(*next_);
  }
  start(*next_, next_->slices[0]);
  next_->reading = true;
}

/// What has to be read a second time the other roots do not read with this one.
BulkReader& PlanReader::bulk_for(const Transfer& transfer) const {
  if (transfer.from_map) return *parts_.filler;
  return transfer.brought && parts_.own ? *parts_.own : *parts_.bulk;
}

void PlanReader::start(Transfer& transfer, Slice& slice) {
  if (transfer.in_memory) return;
  const std::int64_t started = now_ns();
  if (transfer.from_map) {
    // Nobody writes there: the filler only asks for the pages.
    slice.requests.clear();
    for (const PlacedExtent& read : slice.reads) {
      const auto found = maps_.at(0, read.extent.offset, read.extent.length);
      slice.requests.push_back({.offset = read.extent.offset,
                                .into = {const_cast<std::byte*>(found.data()), found.size()}});
    }
  } else {
    const std::uint64_t bytes = bytes_of(slice.reads);
    if (filler_.reads_into_stage()) {
      slice.memory = stage_.take(root_, transfer.part.window, bytes);
    } else {
      slice.memory = memory_[half_].get(bytes);
      half_ = 1 - half_;
    }
    slice.requests = requests_of(*parts_.data, slice.reads, slice.memory);
  }
  bulk_for(transfer).start(slice.requests);
  totals_.read_ns += now_ns() - started;
}

void PlanReader::finish(Transfer& transfer) {
  const std::int64_t started = now_ns();
  if (!transfer.in_memory) bulk_for(transfer).finish([](std::size_t) {});
  transfer.brought = true;
  totals_.read_ns += now_ns() - started;
}

void PlanReader::fill(const Transfer& transfer, const Slice& slice) {
  const std::int64_t started = now_ns();
  for (const PlacedExtent& read : slice.reads) {
    if (touched_.empty() || touched_.back() != read.extent.file) {
      touched_.push_back(read.extent.file);
    }
  }
  if (transfer.in_memory && parts_.mapped.size() > 1) {  // whichever it was
    for (std::uint32_t file = 0; file < parts_.mapped.size(); ++file) touched_.push_back(file);
  }
  const BytesWithKept placed(slice.reads, slice.memory, kept_);
  const FileBytes& bytes = transfer.from_map ? static_cast<const FileBytes&>(maps_) : placed;
  filler_.fill({.samples = slice.samples,
                .plan = *slice.plan,
                .bytes = bytes,
                .memory = !transfer.from_map ? std::span<const std::byte>(slice.memory)
                          : parts_.in_place  ? parts_.mapped[0]->map()
                                             : std::span<const std::byte>(),
                .told_of = transfer.from_map && parts_.in_place
                               ? std::span<const std::span<const std::byte>>(by_address_)
                               : std::span<const std::span<const std::byte>>(),
                .window = transfer.part.window},
               *parts_.bulk);
  for (const FileExtent& extent : transfer.to_keep) {
    kept_.keep(extent, bytes.at(extent.file, extent.offset, extent.length));
  }
  const bool in_place = parts_.data->facts().values == DataSetFacts::Values::in_file;
  (in_place ? totals_.read_ns : totals_.decode_ns) += now_ns() - started;
}

// What the index said of the next part is wrong as well, or will be.
void PlanReader::give_up_index(const IndexMismatch& mismatch, Transfer& transfer) {
  cancel();
  next_.reset();
  kept_.forget_promises();
  check_unchanged();  // a writer at work would explain it as well
  if (!parts_.data->give_up_index(mismatch)) throw mismatch;
  transfer.slices.clear();
  transfer.begun = transfer.reading = false;
}

void PlanReader::check_unchanged() {
  if (parts_.data->files().size() == 1) {
    if (!parts_.mapped.empty()) parts_.mapped[0]->check();
    return parts_.data->check_unchanged();
  }
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const std::uint32_t file : touched_) {
    if (!parts_.mapped.empty()) parts_.mapped[file]->check();
    parts_.data->check_unchanged(file);
  }
  touched_.clear();
}

ReadTotals PlanReader::totals() const {
  ReadTotals totals = totals_;
  turns_.add_to(totals);
  const DecodeCounters of_data = parts_.data->counters();
  totals.source = {.requests = of_data.requests,
                   .bytes_requested = of_data.bytes_requested,
                   .pages_visited = of_data.pages_visited};
  for (const BulkReader* bulk : {parts_.bulk.get(), parts_.own.get(), parts_.filler.get()}) {
    if (bulk == nullptr) continue;
    totals.source.requests += bulk->counters().requests;
    totals.source.bytes_requested += bulk->counters().bytes;
  }
  totals.chunks_decoded = of_data.chunks - before_.chunks;
  totals.bytes_decoded = of_data.bytes_decoded - before_.bytes_decoded;
  totals.index_bytes = parts_.data->used_index_bytes();
  return totals;
}

}  // namespace forebay
