#include "read/extent_reader.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "read/data_access.hpp"
#include "read/mapped_bytes.hpp"
#include "storage/page_cache.hpp"

namespace forebay {
namespace {

bool lies_in(std::span<const std::byte> memory, std::span<const std::byte> bytes) {
  const std::less<> before;
  return !before(bytes.data(), memory.data()) &&
         !before(memory.data() + memory.size(), bytes.data() + bytes.size());
}

/// Sample number `place` of `runs`, counted over all of them.
std::uint64_t sample_at(std::span<const SampleRun> runs, std::uint64_t place) {
  for (const SampleRun& run : runs) {
    if (place < run.count) return run.sample + place;
    place -= run.count;
  }
  return runs.back().sample + runs.back().count - 1;
}

}  // namespace

ExtentReader::ExtentReader(ExtentReaderParts parts, ReadingList& list, Stage& stage, int root,
                           Turns& turns)
    : parts_(std::move(parts)),
      kept_(parts_.keep_bytes),
      list_(list),
      stage_(stage),
      root_(root),
      turns_(turns) {
  if (parts_.mapped) stage_.extend(parts_.mapped->map(), parts_.mapped);
}

void ExtentReader::check_unchanged() {
  if (parts_.mapped) parts_.mapped->check();
  parts_.source->check_unchanged();
}

void ExtentReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    current_ = next_ ? std::move(next_) : prepare(part);
    try {
      deliver(*current_, next);
    } catch (const IndexMismatch& mismatch) {
      give_up_index(mismatch);
      current_->located = current_->reading = false;
      deliver(*current_, {});
    }
  } catch (...) {
    cancel();
    throw;
  }
}

void ExtentReader::cancel() const {
  parts_.bulk->cancel();
  if (parts_.own) parts_.own->cancel();
  if (parts_.filler) parts_.filler->cancel();
}

std::unique_ptr<ExtentReader::Transfer> ExtentReader::prepare(const WindowPart& part) {
  const std::int64_t started = now_ns();
  if (parts_.prepare) parts_.prepare(part);
  auto transfer = std::make_unique<Transfer>();
  transfer->part = part;
  transfer->runs = list_.runs(part);
  totals_.seek_ns += now_ns() - started;
  return transfer;
}

void ExtentReader::deliver(Transfer& transfer, const std::optional<WindowPart>& next) {
  if (!transfer.located) locate(transfer);
  bring(transfer, next);
  if (next_ && turns_.unlimited() && stage_.free(next_->part.window)) start(*next_);
  unpack(transfer);
}

void ExtentReader::locate(Transfer& transfer) {
  const std::int64_t started = now_ns();
  transfer.in_memory = parts_.mapped && is_in_memory(transfer);
  transfer.in_place = transfer.in_memory || parts_.filler;
  extents_.clear();
  for (const SampleRun& run : transfer.runs) {
    if (transfer.in_memory) break;
    parts_.index->extents(run.sample, run.count, extents_);
    after_run();
  }
  if (kept_.enabled()) leave_out_kept(transfer);
  transfer.plan = plan_reads(extents_, parts_.gap_bytes);
  // Gaps take room too.
  const bool too_much = !transfer.in_place && transfer.plan.bytes > stage_.room();
  if (too_much) transfer.plan = plan_reads(extents_, 0);
  transfer.located = true;
  totals_.seek_ns += now_ns() - started;
}

// A few samples tell. What is missing all the same is read by the system when it is used, which is
// slow, but right.
bool ExtentReader::is_in_memory(const Transfer& transfer) {
  constexpr std::uint64_t kProbes = 16;
  std::uint64_t samples = 0;
  for (const SampleRun& run : transfer.runs) samples += run.count;
  const std::uint64_t probes = std::min(samples, kProbes);
  for (std::uint64_t probe = 0; probe < probes; ++probe) {
    extents_.clear();
    parts_.index->extents(sample_at(transfer.runs, samples * probe / probes), 1, extents_);
    const bool cached = std::ranges::all_of(extents_, [this](const Extent& extent) {
      return in_page_cache(*parts_.mapped, extent.offset, extent.length);
    });
    if (!cached) return false;
  }
  return true;
}

// Where runs are many and short, the engine should not run dry meanwhile.
void ExtentReader::after_run() {
  constexpr std::size_t kRunsBetween = 64;
  if (++runs_ % kRunsBetween == 0) parts_.bulk->advance();
}

void ExtentReader::leave_out_kept(Transfer& transfer) {
  transfer.to_keep.clear();
  std::erase_if(extents_, [&](const Extent& extent) {
    if (!extent.common) return false;
    if (kept_.holds(extent)) return true;  // or the transfer before this one brings it
    if (kept_.promise(extent)) transfer.to_keep.push_back(extent);
    return false;
  });
}

void ExtentReader::bring(Transfer& transfer, const std::optional<WindowPart>& next) {
  std::optional<Turns::Turn> turn;
  if (!std::exchange(transfer.had_turn, true)) turn.emplace(turns_);  // one for each part
  if (!transfer.reading) start(transfer);
  if (next && !parts_.prepare) {
    next_ = prepare(*next);
    locate(*next_);
  }
  const std::int64_t started = now_ns();
  if (!transfer.in_memory) bulk_for(transfer).finish([](std::size_t) {});
  transfer.brought = true;
  totals_.read_ns += now_ns() - started;
  if (turn) turn->count(transfer.plan.bytes);
}

/// What has to be read a second time the other roots do not read with this one.
BulkReader& ExtentReader::bulk_for(const Transfer& transfer) const {
  if (transfer.in_place) return *parts_.filler;
  return transfer.brought && parts_.own ? *parts_.own : *parts_.bulk;
}

void ExtentReader::start(Transfer& transfer) {
  const std::int64_t started = now_ns();
  const std::uint64_t window = transfer.part.window;
  if (transfer.mark) {
    stage_.rewind(window, *transfer.mark);
  } else {
    if (transfer.part.phase != Phase::rest) stage_.begin(root_, window);
    transfer.mark = stage_.mark(window);
  }
  transfer.reading = true;
  if (transfer.in_memory) return;
  if (!transfer.in_place) transfer.memory = stage_.take(root_, window, transfer.plan.bytes);
  transfer.requests.clear();
  for (const PlannedRead& read : transfer.plan.reads) {
    transfer.requests.push_back({.offset = read.offset, .into = room_for(transfer, read)});
  }
  bulk_for(transfer).start(transfer.requests);
  totals_.read_ns += now_ns() - started;
}

std::span<std::byte> ExtentReader::room_for(const Transfer& transfer,
                                            const PlannedRead& read) const {
  if (!transfer.in_place) return transfer.memory.subspan(read.place, read.length);
  const auto found = MappedBytes(parts_.mapped->map()).at(read.offset, read.length);
  // Nobody writes there: the filler only asks for the pages.
  return {const_cast<std::byte*>(found.data()), found.size()};
}

void ExtentReader::unpack(const Transfer& transfer) {
  const std::int64_t started = now_ns();
  const PlannedBytes planned(transfer.plan, transfer.memory, &kept_);
  const auto memory = transfer.in_place ? parts_.mapped->map() : transfer.memory;
  const MappedBytes mapped(memory);
  const ExtentBytes& bytes = transfer.in_place ? static_cast<const ExtentBytes&>(mapped) : planned;
  const std::uint64_t window = transfer.part.window;
  const auto in_stage = [&](std::span<const std::byte> found) {
    const bool kept = !found.empty() && !lies_in(memory, found);
    return kept ? stage_.copy(root_, window, found) : found;
  };
  for (const SampleRun& run : transfer.runs) {
    std::uint64_t entry = run.entry;
    parts_.index->unpack(run.sample, run.count, bytes, [&](const Record& record) {
      stage_.place(window, entry++, record.sample, in_stage(record.key), in_stage(record.value));
    });
    after_run();
  }
  for (const Extent& extent : transfer.to_keep) {
    kept_.keep(extent, bytes.at(extent.offset, extent.length));
  }
  totals_.read_ns += now_ns() - started;
}

// What the index said of the next part is wrong as well, or will be.
void ExtentReader::give_up_index(const IndexMismatch& mismatch) {
  cancel();
  next_.reset();
  kept_.forget_promises();
  check_unchanged();  // a writer at work would explain it as well
  if (!parts_.replace) throw mismatch;
  log(parts_.index->give_up() ? LogLevel::warning : LogLevel::info,
      "the index does not fit the data and is not used: {}", mismatch.what());
  const auto another = std::exchange(parts_.replace, nullptr);
  given_up_ = std::exchange(parts_.index, another());
}

void ExtentReader::leave() {
  cancel();
  if (parts_.leave) parts_.leave();
}

std::unique_ptr<ExtentReader> make_extent_reader(const ReaderSite& site, ExtentReaderParts parts,
                                                 std::unique_ptr<BulkReader> own,
                                                 std::unique_ptr<BulkReader> together) {
  parts.bulk = std::move(own);
  if (together) parts.own = std::exchange(parts.bulk, std::move(together));
  parts.gap_bytes = site.gap_bytes;
  parts.keep_bytes = site.keep_bytes;
  return std::make_unique<ExtentReader>(std::move(parts), site.list, site.stage, site.root,
                                        site.turns);
}

void read_sample(RecordSource& source, BulkReader* bulk, RecordIndex* index, std::uint64_t sample,
                 const RecordSink& sink) {
  if (index != nullptr && bulk != nullptr) {
    try {
      std::vector<Extent> extents;
      index->extents(sample, 1, extents);
      const ReadPlan plan = plan_reads(extents, 0);
      std::vector<std::byte> memory(plan.bytes);
      std::vector<ReadRequest> requests;
      for (const PlannedRead& read : plan.reads) {
        requests.push_back(
            {.offset = read.offset, .into = std::span(memory).subspan(read.place, read.length)});
      }
      bulk->read(requests, [](std::size_t) {});
      return index->unpack(sample, 1, PlannedBytes(plan, memory), sink);
    } catch (const IndexMismatch&) {
      // The reading thread will meet it as well, and say so.
    }
  }
  source.seek(sample);
  source.read(1, sink);
}

ReadTotals ExtentReader::totals() const {
  ReadTotals totals = totals_;
  totals.turn_seconds = turns_.waited_seconds();
  totals.source = parts_.source->counters();
  for (const BulkReader* bulk : {parts_.bulk.get(), parts_.own.get(), parts_.filler.get()}) {
    if (bulk == nullptr) continue;
    totals.source.requests += bulk->counters().requests;
    totals.source.bytes_requested += bulk->counters().bytes;
  }
  totals.index_bytes = parts_.index->memory_bytes();
  return totals;
}

}  // namespace forebay
