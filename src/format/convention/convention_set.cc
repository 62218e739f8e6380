#include "format/convention/convention_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "format/class_names.hpp"
#include "storage/joined_file.hpp"

namespace forebay::convention {
namespace {

std::string reason_of(const MetadataRecord& record, const DatabaseNote& note) {
  switch (record.why) {
    case MetadataRecord::Why::unlike:
      return "unlike the other keys, which are " + note.form;
    case MetadataRecord::Why::database:
      return "a named database";
    case MetadataRecord::Why::asked:
      return "left out as asked for";
    case MetadataRecord::Why::known:
      break;
  }
  return "known by its key";
}

/// Records that are no samples for this reason, and the form that the others of the first database
/// with some have.
struct LeftOut {
  std::vector<MetadataRecord> records = {};
  std::string form = {};

  LeftOut(const Convention& convention, MetadataRecord::Why why) {
    for (const DatabaseNote& note : convention.databases()) {
      for (const MetadataRecord& record : note.metadata) {
        if (record.why != why) continue;
        if (records.empty()) form = note.form;
        records.push_back(record);
      }
    }
  }
};

/// One line for all records that nobody has said to be no samples, one for named databases, and one
/// for what may be meant otherwise.
std::vector<std::string> notes_of(const Convention& convention) {
  const LeftOut known(convention, MetadataRecord::Why::known);
  const LeftOut unlike(convention, MetadataRecord::Why::unlike);
  const LeftOut databases(convention, MetadataRecord::Why::database);
  std::vector<std::string> notes, left_out;
  if (!known.records.empty()) {
    left_out.push_back(names_of(known.records) + ", known by name");
  }
  if (!unlike.records.empty()) {
    left_out.push_back(names_of(unlike.records) + ", as the other keys are " + unlike.form);
  }
  if (!left_out.empty()) {
    notes.push_back(fmt::format(
        "no samples: {}; --keep-records makes them samples, and naming them in --leave-out ends "
        "this line",
        fmt::join(left_out, "; ")));
  }
  if (!databases.records.empty()) {
    notes.push_back(
        fmt::format("no samples: {}; open one as PATH#NAME", names_of(databases.records)));
  }
  for (const DatabaseNote& note : convention.databases()) {
    if (note.guess.empty()) continue;
    notes.push_back(note.guess);
    break;
  }
  return notes;
}

}  // namespace

ConventionSet::ConventionSet(std::string path,
                             std::vector<std::unique_ptr<lmdb::LmdbSet>> databases,
                             Convention convention, KeyOrder order_by)
    : DataSet(std::move(path), "lmdb",
              [&] {
                DataFiles files;
                for (const auto& database : databases) files.push_back(database->files()[0]);
                return files;
              }()),
      databases_(std::move(databases)),
      convention_(std::move(convention)),
      order_by_(order_by) {
  for (const DatabaseNote& note : convention_.databases()) {
    first_records_.push_back(note.first_record);
  }
  facts_.entries = convention_.samples();
  facts_.parts = convention_.part_names();
  const std::size_t parts = convention_.parts().size();
  facts_.stored.assign(parts, {.how = "leaves and overflow pages", .in_place = true});
  facts_.named = facts_.keys_in_bytes = true;
  facts_.value_bytes = stored_bytes();
  if (convention_.has_parts()) {
    // What is put together lies behind what it was made of.
    facts_.values = DataSetFacts::Values::in_parts;
    facts_.parts_stay = true;
    facts_.value_bytes *= 2;
  }
  facts_.sample_bytes = facts_.entries > 0 ? stored_bytes() / facts_.entries : 0;
  const std::vector<std::uint64_t> bounds = convention_.bounds();
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    facts_.of_files.push_back(bounds[i] - bounds[i - 1]);
  }
  for (const auto& database : databases_) {
    if (!facts_.fingerprint.empty()) facts_.fingerprint += ";";
    facts_.fingerprint += database->facts().fingerprint;
  }
  facts_.fingerprint += convention_.fingerprint();
  facts_.notes = notes_of(convention_);
  join_labels();
}

/// Databases whose samples are one data set number the same things alike.
void ConventionSet::join_labels() {
  const DataSetFacts* longest = nullptr;
  for (const auto& database : databases_) {
    const DataSetFacts& facts = database->facts();
    if (facts.labels.empty()) continue;
    if (longest == nullptr) longest = &facts;
    const bool more = facts.labels.size() > longest->labels.size();
    const DataSetFacts &first = more ? facts : *longest, &other = more ? *longest : facts;
    require_same_numbers({first.path, first.labels}, {other.path, other.labels});
    longest = &first;
  }
  if (longest != nullptr) facts_.labels = longest->labels;
}

void ConventionSet::keys(const KeySink& sink) const {
  const Convention::Part& part = convention_.parts()[0];
  std::vector<std::string> keys;
  for (const auto& database : databases_) {
    database->keys(
        [&](std::uint64_t, std::span<const std::byte> key) { keys.emplace_back(chars_of(key)); });
  }
  std::uint64_t id = 0;
  part.records.for_each_run(0, facts_.entries, [&](std::uint64_t record, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string& key = keys[record + i];
      sink(id++, bytes_of(std::string_view(key).substr(std::min(part.prefix.size(), key.size()))));
    }
  });
}

/// Of several databases there is no one tree to tell of.
std::string ConventionSet::look_at_pages() const {
  return databases_.size() == 1 ? databases_[0]->look_at_pages() : std::string();
}

std::optional<PagesReport> ConventionSet::check_pages(std::size_t most_faults,
                                                      const RecordSink&) const {
  PagesReport all;
  for (const auto& database : databases_) {
    auto one = *database->check_pages(most_faults - all.faults.size(), {});
    all.records += one.records;
    all.pages += one.pages;
    all.free_pages += one.free_pages;
    all.unreferenced_pages += one.unreferenced_pages;
    all.fault_count += one.fault_count;
    all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
    for (PageFault& fault : one.faults) {
      fault.database = database->facts().path;
      all.faults.push_back(std::move(fault));
    }
  }
  return all;
}

void ConventionSet::locate(Peers& peers, BulkReader& reader) {
  for (std::uint32_t d = 0; d < databases_.size(); ++d) {
    ShiftedReader shifted(reader, offset_in_whole({.file = d}));
    databases_[d]->locate(peers, shifted);
  }
  if (peers.rank() != 0) return;
  log(LogLevel::info, "{}: {} samples, {}: {}", facts_.path, facts_.entries, convention_.text(),
      convention_.databases()[0].why);
}

bool ConventionSet::give_up_index(const Error& mismatch) const {
  lmdb::LmdbSet::GivenUp all;
  for (const auto& database : databases_) {
    const auto of_this = database->give_up();
    if (!of_this) return false;
    all.first = of_this->first && all.first;
    if (database->files()[0]->path() == mismatch.where().file) all.cached = of_this->cached;
  }
  lmdb::LmdbSet::tell_given_up(all, mismatch);
  return true;
}

std::uint64_t ConventionSet::index_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& database : databases_) bytes += database->index_bytes();
  return bytes;
}

std::uint64_t ConventionSet::used_index_bytes() const {
  std::uint64_t bytes = convention_.memory_bytes();
  for (const auto& database : databases_) bytes += database->used_index_bytes();
  return bytes;
}

std::uint64_t ConventionSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& database : databases_) bytes += database->stored_bytes();
  return bytes;
}

std::string ConventionSet::describe() const {
  return fmt::format("{}, {}", convention_.text(), databases_[0]->describe());
}

DecodeCounters ConventionSet::counters() const {
  DecodeCounters all;
  for (const auto& database : databases_) {
    const DecodeCounters of_this = database->counters();
    all.requests += of_this.requests;
    all.bytes_requested += of_this.bytes_requested;
    all.pages_visited += of_this.pages_visited;
  }
  return all;
}

std::string ConventionSet::info() const {
  using Json = nlohmann::ordered_json;
  Json databases = Json::array();
  for (std::size_t d = 0; d < databases_.size(); ++d) {
    const DatabaseNote& note = convention_.databases()[d];
    Json metadata = Json::array();
    for (const MetadataRecord& record : note.metadata) {
      Json one{{"key", record.key}, {"value_bytes", record.value_bytes}, {"count", nullptr}};
      if (!record.counts.empty()) one["count"] = record.counts[0];
      if (record.why != MetadataRecord::Why::known) one["why"] = reason_of(record, note);
      metadata.push_back(std::move(one));
    }
    databases.push_back({{"path", note.path},
                         {"records", note.records},
                         {"stored_bytes", databases_[d]->stored_bytes()},
                         {"convention", to_string(note.convention)},
                         {"why", note.why},
                         {"metadata", metadata}});
  }
  Json info{{"path", facts_.path},
            {"format", "lmdb"},
            {"entries", facts_.entries},
            {"convention", to_string(convention_.databases()[0].convention)},
            {"why", convention_.databases()[0].why},
            {"order_by", to_string(order_by_)},
            {"parts", facts_.parts},
            {"databases", databases},
            {"stored_bytes", stored_bytes()},
            {"fingerprint", facts_.fingerprint}};
  if (!facts_.labels.empty()) info["labels"] = facts_.labels;
  return json_line(info);
}

}  // namespace forebay::convention
