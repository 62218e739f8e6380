#include "cli/sample_reports.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "format/convention/database_list.hpp"
#include "format/lmdb/verify.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"
#include "read/data_access.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Samples that are read together, and the gaps that are read with them.
constexpr std::uint64_t kStepBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostTogether = std::uint64_t{1} << 20;
constexpr std::uint64_t kRecordBytes = 4096;  // records bring the whole page that they lie on
constexpr std::uint64_t kGapBytes = std::uint64_t{64} << 10;
// A damaged first value must not decide what the others are taken for.
constexpr std::uint64_t kSamplesToLookAt = 8;

struct Fault {
  std::optional<std::uint64_t> sample;  ///< none: a page
  std::string text;
};

/// What a reading of all samples has shown.
class Verification {
 public:
  Verification(const DatasetOptions& dataset, const DataSet& data, std::uint64_t max_faults)
      : dataset_(dataset),
        data_(data),
        max_faults_(max_faults),
        reader_(data, {.engine = usable_engine(dataset.path, dataset.engine),
                       .bulk = {},
                       .gap_bytes = kGapBytes}) {}

  void check_pages();
  void check_samples();
  Json json() const;
  void print() const;
  std::uint64_t fault_count() const { return fault_count_; }

 private:
  bool of_fields() const { return !data_.facts().schema.fields.empty(); }
  std::shared_ptr<const Codec> find_codec();
  void check(std::uint64_t first, std::uint64_t count);
  void decode(std::size_t position, std::uint64_t sample);
  void note(std::optional<std::uint64_t> sample, std::string text);
  std::string shape() const;

  const DatasetOptions& dataset_;
  const DataSet& data_;
  std::uint64_t max_faults_;
  SampleReader reader_;
  std::shared_ptr<const Codec> codec_;  ///< where samples are no fields already
  std::optional<FieldBuffers> buffers_;
  bool has_pages_ = false;
  std::uint64_t records_ = 0, pages_ = 0;
  std::uint64_t fault_count_ = 0;
  std::vector<Fault> faults_;  ///< the first ones
  double seconds_ = 0;
};

void Verification::note(std::optional<std::uint64_t> sample, std::string text) {
  ++fault_count_;
  if (faults_.size() < max_faults_) faults_.push_back({sample, std::move(text)});
}

void Verification::check_pages() {
  has_pages_ = true;
  for (const std::string& path : convention::all_databases(dataset_.path)) {
    lmdb::Database database =
        lmdb::Database::open_unheld(path, usable_engine(path, dataset_.engine));
    const lmdb::VerifyReport report = lmdb::verify(database, {.max_faults = max_faults_});
    database.check_unchanged();
    records_ += report.records;
    pages_ += report.pages;
    fault_count_ += report.fault_count - report.faults.size();
    for (const lmdb::Fault& fault : report.faults) {
      note({}, fmt::format("{}: page {} at offset {}: {} {}", path, fault.page, fault.offset,
                           fault.key, fault.text));
    }
  }
}

void Verification::check_samples() {
  const auto start = std::chrono::steady_clock::now();
  if (!of_fields()) {
    codec_ = find_codec();
    buffers_.emplace(codec_->schema());
  }
  const DataSetFacts& facts = data_.facts();
  Progress progress("verifying", facts.entries);
  const std::uint64_t least = facts.keys_in_bytes ? kRecordBytes : 1;
  const std::uint64_t step =
      std::clamp<std::uint64_t>(kStepBytes / std::max(least, facts.sample_bytes), 1, kMostTogether);
  for (std::uint64_t first = 0; first < facts.entries; first += step) {
    progress.update(first);
    check(first, std::min(step, facts.entries - first));
  }
  data_.check_unchanged();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of the first sample that is one.
std::shared_ptr<const Codec> Verification::find_codec() {
  const CodecOptions options = codec_of(data_.facts(), dataset_.codec);
  if (options.codec == "bytes" || options.codec == "raw") return make_codec(options, {});
  std::optional<Error> problem;
  for (std::uint64_t id = 0; id < std::min(data_.facts().entries, kSamplesToLookAt); ++id) {
    try {
      reader_.read(std::span(&id, 1));
      const auto value = reader_.value(0);
      if (!value.empty() || options.codec != "auto") return make_codec(options, value);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::changed) throw;
      if (!problem) problem = error.within({.file = dataset_.path, .sample = id});
    }
  }
  if (problem) throw *problem;
  return make_codec({.codec = "bytes", .schema = {}}, {});
}

/// Halves what cannot be read until it is known which samples cannot.
void Verification::check(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  try {
    reader_.read(ids);
  } catch (const Error& error) {
    // That the files were changed says nothing of any sample.
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::io) throw;
    if (count == 1) return note(first, error.within({.sample = first}).what());
    check(first, count / 2);
    return check(first + count / 2, count - count / 2);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) decode(i, ids[i]);
}

void Verification::decode(std::size_t position, std::uint64_t sample) {
  std::string key;
  try {
    const auto name = reader_.key(position);
    key = printable_key({reinterpret_cast<const char*>(name.data()), name.size()});
    const auto value = reader_.value(position);
    if (codec_ && !codec_->schema().fields.empty()) codec_->decode(value, buffers_->spans());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
    note(sample, error.within({.sample = sample, .key = key}).what());
  }
}

Json Verification::json() const {
  const DataSetFacts& facts = data_.facts();
  Json json{{"path", dataset_.path}, {"sound", fault_count_ == 0}};
  if (!has_pages_) json["format"] = facts.format;
  if (has_pages_) json["records"] = records_;
  json["samples"] = facts.entries;
  if (codec_) json["codec"] = codec_->name();
  json["schema"] = to_string(codec_ ? codec_->schema() : facts.schema);
  if (has_pages_) {
    json["pages"] = pages_;
  } else {
    json["bytes_read"] = reader_.counters().bytes;
    json["chunks_decoded"] = data_.counters().chunks;
    json["bytes_decoded"] = data_.counters().bytes_decoded;
  }
  json["fault_count"] = fault_count_;
  json["faults"] = Json::array();
  for (const Fault& fault : faults_) {
    json["faults"].push_back(has_pages_ ? Json(fault.text)
                                        : Json{{"sample", *fault.sample}, {"text", fault.text}});
  }
  if (!facts.notes.empty()) json["notes"] = facts.notes;
  if (!has_pages_) json["seconds"] = seconds_;
  return json;
}

/// What a sample is made of.
std::string Verification::shape() const {
  if (of_fields()) return to_string(data_.facts().schema);
  if (has_pages_) return fmt::format("{} records", human_count(records_));
  const auto& parts = data_.facts().parts;
  return parts.empty() ? "any size" : fmt::format("{}", fmt::join(parts, ", "));
}

void Verification::print() const {
  for (const std::string& note : data_.facts().notes) fmt::print("note: {}\n", note);
  for (const Fault& fault : faults_) fmt::print("{}\n", fault.text);
  if (fault_count_ > faults_.size()) {
    fmt::print("and {} more: see --max-faults\n", human_count(fault_count_ - faults_.size()));
  }
  fmt::print("{}: {} samples of {} checked in {:.1f} s: {}\n", dataset_.path,
             human_count(data_.facts().entries), shape(), seconds_,
             fault_count_ == 0 ? "sound" : human_count(fault_count_) + " faults");
}

}  // namespace

void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults) {
  const auto data = open_sample_set(dataset, false);
  Verification verification(dataset, *data, max_faults);
  if (!is_sample_set(dataset)) verification.check_pages();
  verification.check_samples();
  if (dataset.json) {
    print_json(verification.json());
  } else {
    verification.print();
  }
  if (verification.fault_count() == 0) return;
  flush_output();
  throw Error(ErrorKind::corrupt,
              fmt::format("{} faults in {} samples", human_count(verification.fault_count()),
                          human_count(data->facts().entries)),
              "restore the files from a copy, or leave these samples out (--order listed)",
              at_file(dataset.path));
}

}  // namespace forebay
