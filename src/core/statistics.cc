#include "forebay/statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace forebay {
namespace {

using Statistics = LoaderStatistics;

/// Every member once: its name, and how ranks combine.
template <typename Visitor>
void for_each_figure(Visitor visit) {
  constexpr bool kSum = false;
  constexpr bool kMaximum = true;
  visit("open_seconds", &Statistics::open_seconds, kMaximum);
  visit("first_batch_seconds", &Statistics::first_batch_seconds, kMaximum);
  visit("seek_seconds", &Statistics::seek_seconds, kSum);
  visit("read_seconds", &Statistics::read_seconds, kSum);
  visit("wait_seconds", &Statistics::wait_seconds, kSum);
  visit("turn_seconds", &Statistics::turn_seconds, kSum);
  visit("roots_at_once", &Statistics::roots_at_once, kMaximum);
  visit("decode_seconds", &Statistics::decode_seconds, kSum);
  visit("exposed_seconds", &Statistics::exposed_seconds, kSum);
  visit("exposed_decode_seconds", &Statistics::exposed_decode_seconds, kSum);
  visit("skew_seconds", &Statistics::skew_seconds, kSum);
  visit("batches", &Statistics::batches, kSum);
  visit("samples", &Statistics::samples, kSum);
  visit("repeated", &Statistics::repeated, kSum);
  visit("dropped", &Statistics::dropped, kSum);
  visit("skipped", &Statistics::skipped, kSum);
  visit("bytes_delivered", &Statistics::bytes_delivered, kSum);
  visit("samples_read", &Statistics::samples_read, kSum);
  visit("samples_fetched", &Statistics::samples_fetched, kSum);
  visit("near_bytes", &Statistics::near_bytes, kSum);
  visit("far_bytes", &Statistics::far_bytes, kSum);
  visit("fetch_seconds", &Statistics::fetch_seconds, kSum);
  visit("reuse_distance", &Statistics::reuse_distance, kMaximum);
  visit("bytes_requested", &Statistics::bytes_requested, kSum);
  visit("requests", &Statistics::requests, kSum);
  visit("pages_visited", &Statistics::pages_visited, kSum);
  visit("records_skipped", &Statistics::records_skipped, kSum);
  visit("missed_pages", &Statistics::missed_pages, kSum);
  visit("redundant_pages", &Statistics::redundant_pages, kSum);
  visit("chunks_decoded", &Statistics::chunks_decoded, kSum);
  visit("bytes_decoded", &Statistics::bytes_decoded, kSum);
  visit("index_bytes", &Statistics::index_bytes, kMaximum);
  visit("voluntary_switches", &Statistics::voluntary_switches, kSum);
  visit("involuntary_switches", &Statistics::involuntary_switches, kSum);
  visit("minor_faults", &Statistics::minor_faults, kSum);
  visit("major_faults", &Statistics::major_faults, kSum);
  visit("busy_seconds", &Statistics::busy_seconds, kSum);
  visit("elapsed_seconds", &Statistics::elapsed_seconds, kSum);
  visit("peak_resident_bytes", &Statistics::peak_resident_bytes, kMaximum);
  visit("private_bytes", &Statistics::private_bytes, kMaximum);
  visit("mapped_bytes", &Statistics::mapped_bytes, kMaximum);
}

}  // namespace

double LoaderStatistics::asleep_share() const {
  if (elapsed_seconds <= 0) return 0;
  return std::clamp(1 - busy_seconds / elapsed_seconds, 0.0, 1.0);
}

double LoaderStatistics::read_amplification() const {
  if (bytes_delivered == 0) return 0;
  return static_cast<double>(bytes_requested) / static_cast<double>(bytes_delivered);
}

double LoaderStatistics::saved_share() const {
  if (samples_read == 0 || samples <= samples_read) return 0;
  return 1 - static_cast<double>(samples_read) / static_cast<double>(samples);
}

LoaderStatistics combine(std::span<const LoaderStatistics> ranks) {
  LoaderStatistics all;
  for (const LoaderStatistics& rank : ranks) {
    for_each_figure([&](const char*, auto member, bool maximum) {
      all.*member = maximum ? std::max(all.*member, rank.*member) : all.*member + rank.*member;
    });
  }
  return all;
}

std::string to_json(const LoaderStatistics& statistics) {
  nlohmann::ordered_json json;
  for_each_figure([&](const char* name, auto member, bool) { json[name] = statistics.*member; });
  json["asleep_share"] = statistics.asleep_share();
  json["read_amplification"] = statistics.read_amplification();
  json["saved_share"] = statistics.saved_share();
  return json.dump();
}

}  // namespace forebay
