#include "read/extent_reader.hpp"

#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace forebay {

void ExtentReader::read(const WindowPart& part) {
  const std::int64_t started = now_ns();
  if (parts_.prepare) parts_.prepare(part);
  totals_.seek_ns += now_ns() - started;
  const auto runs = sample_runs(plan_.order(), plan_.pieces(root_, part));
  const std::uint64_t mark = stage_.mark();
  had_turn_ = false;
  try {
    read_runs(part.window, runs);
  } catch (const IndexMismatch& mismatch) {
    parts_.source->check_unchanged();  // a writer at work would explain it as well
    give_up_index(mismatch);
    stage_.rewind(mark);
    read_runs(part.window, runs);
  }
}

void ExtentReader::read_runs(std::uint64_t window, std::span<const SampleRun> runs) {
  const ReadPlan plan = locate(runs);
  const auto memory = bring(plan, window);
  const std::int64_t arrived = now_ns();
  unpack(runs, PlannedBytes(plan, memory), window);
  totals_.read_ns += now_ns() - arrived;
}

ReadPlan ExtentReader::locate(std::span<const SampleRun> runs) {
  const std::int64_t started = now_ns();
  extents_.clear();
  for (const SampleRun& run : runs) parts_.index->extents(run.sample, run.count, extents_);
  ReadPlan plan = plan_reads(extents_, parts_.gap_bytes);
  totals_.seek_ns += now_ns() - started;
  return plan;
}

std::span<std::byte> ExtentReader::bring(const ReadPlan& plan, std::uint64_t window) {
  const auto memory = stage_.take(root_, window, plan.bytes);
  requests_.clear();
  for (const PlannedRead& read : plan.reads) {
    requests_.push_back({.offset = read.offset, .into = memory.subspan(read.place, read.length)});
  }
  std::optional<Turns::Turn> turn;
  if (!std::exchange(had_turn_, true)) turn.emplace(turns_);  // a part has one turn
  const std::int64_t started = now_ns();
  parts_.bulk->read(requests_, [](std::size_t) {});
  totals_.read_ns += now_ns() - started;
  if (turn) turn->count(plan.bytes);
  return memory;
}

void ExtentReader::unpack(std::span<const SampleRun> runs, const PlannedBytes& bytes,
                          std::uint64_t window) {
  for (const SampleRun& run : runs) {
    std::uint64_t entry = run.entry;
    parts_.index->unpack(run.sample, run.count, bytes, [&](const Record& record) {
      stage_.place(window, entry++, record.sample, record.key, record.value);
    });
  }
}

void ExtentReader::give_up_index(const IndexMismatch& mismatch) {
  if (!parts_.replace) throw mismatch;
  log(parts_.index->give_up() ? LogLevel::warning : LogLevel::info,
      "the index does not fit the data and is not used: {}", mismatch.what());
  const auto another = std::exchange(parts_.replace, nullptr);
  given_up_ = std::exchange(parts_.index, another());
}

void read_first(RecordSource& source, BulkReader* bulk, RecordIndex* index,
                const RecordSink& sink) {
  if (index != nullptr && bulk != nullptr) {
    try {
      std::vector<Extent> extents;
      index->extents(0, 1, extents);
      const ReadPlan plan = plan_reads(extents, 0);
      std::vector<std::byte> memory(plan.bytes);
      std::vector<ReadRequest> requests;
      for (const PlannedRead& read : plan.reads) {
        requests.push_back(
            {.offset = read.offset, .into = std::span(memory).subspan(read.place, read.length)});
      }
      bulk->read(requests, [](std::size_t) {});
      return index->unpack(0, 1, PlannedBytes(plan, memory), sink);
    } catch (const IndexMismatch&) {
      // The reading thread will meet it as well, and say so.
    }
  }
  source.seek(0);
  source.read(1, sink);
}

ReadTotals ExtentReader::totals() const {
  ReadTotals totals = totals_;
  totals.turn_seconds = turns_.waited_seconds();
  totals.source = parts_.source->counters();
  const BulkCounters bulk = parts_.bulk->counters();
  totals.source.requests += bulk.requests;
  totals.source.bytes_requested += bulk.bytes;
  totals.index_bytes = parts_.index->memory_bytes();
  return totals;
}

}  // namespace forebay
