#include "read/extent_reader.hpp"

#include <optional>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace forebay {

void ExtentReader::read(const WindowPart& part, const std::optional<WindowPart>& next) {
  try {
    std::unique_ptr<Transfer> transfer = std::move(ahead_);
    if (transfer) {
      finish();
    } else {
      transfer = std::make_unique<Transfer>(prepare(part));
      bring(*transfer);
    }
    if (next && may_start(*next)) {
      ahead_ = std::make_unique<Transfer>(prepare(*next));
      start(*ahead_);
    }
    try {
      unpack(*transfer);
    } catch (const IndexMismatch& mismatch) {
      read_again(*transfer, mismatch);
    }
  } catch (...) {
    parts_.bulk->cancel();
    throw;
  }
}

bool ExtentReader::may_start(const WindowPart& next) const {
  return !parts_.prepare && turns_.unlimited() && stage_.free(next.window);
}

ExtentReader::Transfer ExtentReader::prepare(const WindowPart& part) {
  const std::int64_t started = now_ns();
  if (parts_.prepare) parts_.prepare(part);
  if (part.phase != Phase::rest) stage_.begin(root_, part.window);
  Transfer transfer{.part = part,
                    .runs = sample_runs(plan_.order(), plan_.pieces(root_, part)),
                    .mark = stage_.mark(part.window)};
  locate(transfer);
  totals_.seek_ns += now_ns() - started;
  return transfer;
}

void ExtentReader::locate(Transfer& transfer) {
  extents_.clear();
  for (const SampleRun& run : transfer.runs) {
    parts_.index->extents(run.sample, run.count, extents_);
  }
  transfer.plan = plan_reads(extents_, parts_.gap_bytes);
}

void ExtentReader::start(Transfer& transfer) {
  const std::int64_t started = now_ns();
  transfer.memory = stage_.take(root_, transfer.part.window, transfer.plan.bytes);
  transfer.requests.clear();
  for (const PlannedRead& read : transfer.plan.reads) {
    transfer.requests.push_back(
        {.offset = read.offset, .into = transfer.memory.subspan(read.place, read.length)});
  }
  parts_.bulk->start(transfer.requests);
  totals_.read_ns += now_ns() - started;
}

void ExtentReader::finish() {
  const std::int64_t started = now_ns();
  parts_.bulk->finish([](std::size_t) {});
  totals_.read_ns += now_ns() - started;
}

void ExtentReader::bring(Transfer& transfer) {
  Turns::Turn turn(turns_);
  start(transfer);
  finish();
  turn.count(transfer.plan.bytes);
}

void ExtentReader::unpack(const Transfer& transfer) {
  const std::int64_t started = now_ns();
  const PlannedBytes bytes(transfer.plan, transfer.memory);
  for (const SampleRun& run : transfer.runs) {
    std::uint64_t entry = run.entry;
    parts_.index->unpack(run.sample, run.count, bytes, [&](const Record& record) {
      stage_.place(transfer.part.window, entry++, record.sample, record.key, record.value);
    });
  }
  totals_.read_ns += now_ns() - started;
}

// Without another turn: there is one for each part.
void ExtentReader::read_again(Transfer& transfer, const IndexMismatch& mismatch) {
  parts_.bulk->cancel();
  ahead_.reset();
  parts_.source->check_unchanged();  // a writer at work would explain it as well
  give_up_index(mismatch);
  stage_.rewind(transfer.part.window, transfer.mark);
  locate(transfer);
  start(transfer);
  finish();
  unpack(transfer);
}

void ExtentReader::leave() {
  parts_.bulk->cancel();
  if (parts_.leave) parts_.leave();
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
