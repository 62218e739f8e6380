#include "loader/run_figures.hpp"

#include "core/log.hpp"
#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"

namespace forebay {
namespace {

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

void SkippedList::add(const std::string& file, std::span<const SkippedSample> skipped) {
  for (const SkippedSample& sample : skipped) {
    if (listed_.size() >= kMostListed || !ids_.insert(sample.id).second) continue;
    listed_.push_back(sample);
    if (listed_.size() > kMostLogged) continue;
    const Error error(ErrorKind::corrupt, "is skipped: " + sample.message, {},
                      {.file = file, .sample = sample.id, .key = sample.key});
    log(LogLevel::warning, "{}{}", error.what(),
        listed_.size() == kMostLogged ? "; further ones are not told" : "");
  }
}

void RunFigures::end_opening() { figures_.open_seconds = seconds(now_ns() - start_.ns); }

void RunFigures::count(const Delivery& delivery) {
  if (figures_.batches++ == 0) figures_.first_batch_seconds = seconds(now_ns() - start_.ns);
  epochs_done_ = delivery.epochs_done;
  figures_.samples += delivery.samples.size();
  for (const Sample& sample : delivery.samples) {
    figures_.bytes_delivered += packed_size(sample.value);
    if (sample.repeat) ++figures_.repeated;
  }
  figures_.skipped += delivery.skipped.size();
  skipped_.add(file_, delivery.skipped);
}

void RunFigures::add_decode_wait(std::int64_t ns) {
  figures_.exposed_decode_seconds += seconds(ns);
}

LoaderStatistics RunFigures::all() const {
  LoaderStatistics all = figures_;
  const ReadTotals read = reading_->get();
  all.seek_seconds = seconds(read.seek_ns);
  all.read_seconds = seconds(read.read_ns);
  all.wait_seconds = seconds(read.wait_ns);
  all.turn_seconds = read.turn_seconds;
  all.roots_at_once = static_cast<std::uint64_t>(read.roots_at_once);
  all.missed_pages = read.missed_pages;
  all.redundant_pages = read.redundant_pages;
  all.decode_seconds += seconds(read.decode_ns);
  all.chunks_decoded = read.chunks_decoded;
  all.bytes_decoded = read.bytes_decoded;
  all.index_bytes = read.index_bytes;
  all.requests = read.source.requests;
  all.bytes_requested = read.source.bytes_requested;
  all.pages_visited = read.source.pages_visited;
  all.records_skipped = read.source.records_skipped;
  const ProcessUsage usage = process_usage() - start_.usage;
  all.voluntary_switches = usage.voluntary_switches;
  all.involuntary_switches = usage.involuntary_switches;
  all.minor_faults = usage.minor_faults;
  all.major_faults = usage.major_faults;
  all.busy_seconds = usage.user_seconds + usage.system_seconds;
  all.elapsed_seconds = seconds(now_ns() - start_.ns);
  all.peak_resident_bytes = usage.peak_resident_bytes;
  all.private_bytes = usage.private_bytes;
  all.mapped_bytes = usage.mapped_bytes;
  return all;
}

}  // namespace forebay
