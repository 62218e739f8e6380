#include "format/convention/layout.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <tuple>

#include "forebay/error.hpp"
#include "format/convention/key_words.hpp"
#include "storage/storages.hpp"

namespace forebay::convention {
namespace {

/// All records but those of `metadata`, in key order.
RecordMap without(const std::vector<MetadataRecord>& metadata, std::uint64_t entries) {
  RecordMap map;
  std::uint64_t next = 0;
  for (const MetadataRecord& record : metadata) {
    map.add_range(next, record.record - next);
    next = record.record + 1;
  }
  map.add_range(next, entries - next);
  return map;
}

std::vector<MetadataRecord> left_out(const KeyLook& look, MetadataRecord::Why why) {
  std::vector<MetadataRecord> records;
  for (const MetadataRecord& record : look.metadata) {
    if (record.why == why) records.push_back(record);
  }
  return records;
}

/// "; nextid, deleted_ids: unlike the other keys, which are numbers".
std::string unlike_text(const KeyLook& look) {
  const auto unlike = left_out(look, MetadataRecord::Why::unlike);
  if (unlike.empty()) return {};
  return fmt::format("; {}: unlike the other keys, which are {}", names_of(unlike), look.form);
}

Layout lay_out_plain(lmdb::Database& database, KeyLook look, const ConventionOptions& options) {
  Layout layout;
  layout.why = "every record is a sample";
  if (!look.metadata.empty()) {
    layout.why += " but " + names_of(look.metadata) + unlike_text(look);
  }
  layout.metadata = std::move(look.metadata);
  layout.guess = std::move(look.guess);
  if (!layout.guess.empty()) layout.why += "; " + layout.guess;
  if (options.convention == ConventionName::plain) layout.why += ", as asked for";
  if (!layout.metadata.empty()) number_metadata(database, layout.metadata);
  const bool by_number = options.order_by == KeyOrder::number;
  RecordMap records = by_number && look.bytes_order ? order_by_number(database, layout.metadata)
                                                    : without(layout.metadata, look.entries);
  if (by_number) layout.why += "; ordered by the numbers in the keys";
  layout.parts.push_back({.name = {}, .prefix = {}, .records = std::move(records)});
  check_counters(database, layout.metadata, layout.samples());
  return layout;
}

bool has_list(const lmdb::Database& database) {
  const std::string path = meta_info_path(database);
  return !path.empty() && storage_has(path);
}

[[noreturn]] void refuse_groups(const lmdb::Database& database, const KeyLook& look) {
  throw Error(ErrorKind::usage,
              fmt::format("convention grouped needs keys of several prefixes with numbers, and "
                          "they go from {} to {}",
                          shown_key(look.first_key), shown_key(look.last_key)),
              "use --convention auto or plain", {.file = database.path()});
}

}  // namespace

std::string names_of(const std::vector<MetadataRecord>& metadata) {
  constexpr std::size_t kMostNames = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(metadata.size(), kMostNames); ++i) {
    const MetadataRecord& record = metadata[i];
    text += (text.empty() ? "" : ", ") + shown_key(record.key);
    if (record.why == MetadataRecord::Why::database) text += " (a named database)";
    if (!record.counts.empty()) text += fmt::format(" ({})", record.counts[0]);
  }
  const std::size_t more = metadata.size() - std::min(metadata.size(), kMostNames);
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

void check_counters(const lmdb::Database& database, const std::vector<MetadataRecord>& metadata,
                    std::uint64_t samples) {
  for (const MetadataRecord& record : metadata) {
    const auto& counts = record.counts;
    if (counts.empty() || std::ranges::find(counts, samples) != counts.end()) continue;
    throw Error(ErrorKind::corrupt,
                fmt::format("record '{}' counts {} samples, but there are {}", record.key,
                            counts[0], samples),
                "write the database again; or say which records are samples with --leave-out and "
                "--keep-records, or that all are with --convention plain",
                {.file = database.path(), .key = record.key});
  }
}

RecordMap order_by_number(lmdb::Database& database, const std::vector<MetadataRecord>& metadata) {
  struct Numbered {
    std::size_t prefix = 0;
    std::uint64_t number = 0;
    std::uint64_t record = 0;
  };
  std::vector<Numbered> all;
  std::vector<std::string> prefixes;
  std::size_t next_metadata = 0;
  for_each_key(database, [&](std::uint64_t record, std::string_view key) {
    if (next_metadata < metadata.size() && key == metadata[next_metadata].key) {
      ++next_metadata;
      return true;
    }
    const auto numbered = numbered_key(key);
    if (!numbered) {
      throw Error(ErrorKind::usage, "the key does not end in a number", "use --order-by key",
                  {.file = database.path(), .key = shown_key(key)});
    }
    // Keys of one prefix follow each other, but for longer ones among them.
    if (prefixes.empty() || prefixes.back() != numbered->prefix) {
      const auto known = std::ranges::find(prefixes, numbered->prefix);
      if (known != prefixes.end()) {
        all.push_back(
            {static_cast<std::size_t>(known - prefixes.begin()), numbered->number, record});
        return true;
      }
      prefixes.emplace_back(numbered->prefix);
    }
    all.push_back({prefixes.size() - 1, numbered->number, record});
    return true;
  });
  std::ranges::sort(
      all, {}, [](const Numbered& one) { return std::tuple(one.prefix, one.number, one.record); });
  RecordMap map;
  for (const Numbered& one : all) map.add(one.record);
  return map;
}

std::string meta_info_path(const lmdb::Database& database) {
  const lmdb::DatasetPath path = lmdb::resolve_dataset_path(database.path());
  if (path.foreign || path.single_file || !path.name.empty()) return {};
  return path.environment + "/meta_info.txt";
}

std::optional<std::string> guess_of_plain(lmdb::Database& database,
                                          const ConventionOptions& options) {
  if (options.order_by != KeyOrder::key || !options.leave_out.empty()) return std::nullopt;
  const bool plain = options.convention == ConventionName::plain;
  const bool automatic = options.convention == ConventionName::automatic;
  if (!plain && (!automatic || has_list(database))) return std::nullopt;
  try {
    // Then no key decides, and none is read.
    if (plain && !database.may_hold_databases()) return std::string();
    KeyLook look = look_at_keys(database, options.choice());
    const bool all = look.metadata.empty() && (plain || !looks_grouped(look, false));
    return all ? std::optional(std::move(look.guess)) : std::nullopt;
  } catch (const Error&) {
    return std::string();
  }
}

Layout lay_out(lmdb::Database& database, const ConventionOptions& options) {
  KeyLook look = look_at_keys(database, options.choice());
  const bool automatic = options.convention == ConventionName::automatic;
  const bool by_list = options.convention == ConventionName::meta_info;
  Layout layout;
  const std::vector<bool> used = look.used;
  const std::string form = look.form;
  if (by_list || (automatic && has_list(database))) {
    layout = lay_out_by_list(database, meta_info_path(database), look.metadata);
  } else if (options.convention == ConventionName::grouped ||
             (automatic && looks_grouped(look, false))) {
    if (!looks_grouped(look, true)) refuse_groups(database, look);
    layout = lay_out_groups(database, look);
    const auto known = left_out(look, MetadataRecord::Why::known);
    if (!known.empty()) layout.why += "; no samples: " + names_of(known);
    layout.why += unlike_text(look);
  } else {
    layout = lay_out_plain(database, std::move(look), options);
  }
  layout.used = used;
  layout.form = form;
  for (LayoutPart& part : layout.parts) part.records.finish();
  return layout;
}

RecordMap RecordMap::of_range(std::uint64_t first, std::uint64_t count) {
  RecordMap map;
  map.add_range(first, count);
  return map;
}

void RecordMap::add_range(std::uint64_t first, std::uint64_t count) {
  if (count == 0) return;
  const bool goes_on =
      !runs_.empty() && runs_.back().record + (samples_ - runs_.back().sample) == first;
  if (!goes_on) runs_.push_back({.sample = samples_, .record = first});
  samples_ += count;
}

void RecordMap::append(const RecordMap& other, std::uint64_t shift) {
  other.for_each_run(0, other.samples(), [&](std::uint64_t record, std::uint64_t count) {
    add_range(record + shift, count);
  });
}

void RecordMap::finish() {
  if (runs_.size() * sizeof(Run) > samples_ * sizeof(std::uint64_t)) {
    std::vector<std::uint64_t> records;
    records.reserve(samples_);
    for_each_run(0, samples_, [&](std::uint64_t record, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) records.push_back(record + i);
    });
    records_ = std::move(records);
    runs_ = {};
  }
  runs_.shrink_to_fit();
}

RecordMap::Stretch RecordMap::stretch_at(std::uint64_t sample, std::uint64_t most) const {
  if (!records_.empty()) {
    std::uint64_t count = 1;
    while (count < most && records_[sample + count] == records_[sample] + count) ++count;
    return {records_[sample], count};
  }
  const auto after = std::ranges::upper_bound(runs_, sample, {}, &Run::sample);
  const Run& run = *(after - 1);
  const std::uint64_t end = after == runs_.end() ? samples_ : after->sample;
  return {run.record + (sample - run.sample), std::min(most, end - sample)};
}

std::uint64_t RecordMap::record(std::uint64_t sample) const { return stretch_at(sample, 1).record; }

bool RecordMap::is_plain(std::uint64_t records) const {
  if (samples_ != records) return false;
  return samples_ == 0 || stretch_at(0, samples_).count == samples_;
}

std::uint64_t RecordMap::memory_bytes() const {
  return runs_.size() * sizeof(Run) + records_.size() * sizeof(std::uint64_t);
}

std::uint64_t RecordMap::digest() const {
  XXH64_hash_t digest = XXH3_64bits(&samples_, sizeof samples_);
  for_each_run(0, samples_, [&](std::uint64_t record, std::uint64_t count) {
    const std::uint64_t pair[] = {record, count};
    digest = XXH3_64bits_withSeed(pair, sizeof pair, digest);
  });
  return digest;
}

}  // namespace forebay::convention
