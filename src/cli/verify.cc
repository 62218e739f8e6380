// forebay verify: all pages that a data set's files are made of, and every sample, decoded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "cli/inspect_samples.hpp"
#include "cli/verify.hpp"
#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/class_names.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"
#include "program/run.hpp"
#include "read/data_access.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// A damaged first value must not decide what the others are taken for.
constexpr Doubts kDoubts{.undecodable = true, .unreadable = true, .votes = 8};

}  // namespace

std::uint64_t samples_at_once(const DataSetFacts& facts) {
  constexpr std::uint64_t kStepBytes = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMostTogether = std::uint64_t{1} << 20;
  constexpr std::uint64_t kRecordBytes = 4096;  // records bring the whole page that they lie on
  const std::uint64_t least = facts.keys_in_bytes ? kRecordBytes : 1;
  return std::clamp<std::uint64_t>(kStepBytes / std::max(least, facts.sample_bytes), 1,
                                   kMostTogether);
}

Decoder::Decoder(const DataSet& data, const CodecOptions& options) : options_(options) {
  parse_schema(options.schema);  // a fault of the request is none of each value
  const auto read = [&](std::uint64_t id, const RecordSink& sink) { data.read_one(id, sink); };
  try {
    use(find_telling_sample(options, data.facts().entries, read, kDoubts).make(data.facts().path));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::changed) throw;
    problem_ = error;
  }
}

void Decoder::operator()(std::span<const std::byte> value) {
  if (!codec_) use(make_codec(options_, value));
  codec_->decode(value, spans_);
}

void Decoder::use(CodecPtr codec) {
  codec_ = std::move(codec);
  problem_.reset();
  for (const Field& field : codec_->schema().fields) buffers_.emplace_back(field.bytes());
  spans_.assign(buffers_.begin(), buffers_.end());
}

namespace {

struct Fault {
  Json json;
  std::string text;
};

/// What a reading of everything has shown.
class Verification {
 public:
  Verification(const DatasetOptions& dataset, std::uint64_t max_faults)
      : dataset_(dataset),
        data_(open_whole(dataset, false)),
        max_faults_(max_faults),
        reader_(*data_, {.engine = usable_engine(*data_, dataset.engine),
                         .bulk = {},
                         .gap_bytes = kVerifyGapBytes}) {
    const CodecOptions how = codec_of(facts(), dataset.codec);
    // Of samples that are fields already there is nothing to decode.
    if (facts().schema.fields.empty()) decoder_.emplace(*data_, how);
  }

  void run();
  Json json() const;
  void print() const;
  /// Throws corrupt when something is wrong.
  void judge() const;

 private:
  const DataSetFacts& facts() const { return data_->facts(); }
  const Codec* codec() const { return decoder_ ? decoder_->codec() : nullptr; }
  const Schema& schema() const { return codec() ? codec()->schema() : facts().schema; }
  /// Whether samples were looked at where they lie on their pages.
  bool on_pages() const { return pages_ && pages_->samples; }
  void check_pages(Progress& progress);
  void check_files();
  void check_samples(Progress& progress);
  void check(std::uint64_t first, std::uint64_t count);
  void decode(std::size_t position, std::uint64_t sample);
  void look_at_value(std::span<const std::byte> value, std::uint64_t sample,
                     const std::string& key);
  void look_at_label(std::uint64_t sample, const std::string& key);
  void check_labels();
  std::vector<std::string> notes() const;
  /// One more; whether it is among those that are shown.
  bool count_fault() {
    ++fault_count_;
    return faults_.size() < max_faults_;
  }
  void note(std::uint64_t sample, const Error& error);
  std::string checked() const;

  const DatasetOptions& dataset_;
  std::unique_ptr<const DataSet> data_;
  std::uint64_t max_faults_;
  SampleReader reader_;
  std::optional<Decoder> decoder_;
  std::optional<PagesReport> pages_;
  std::uint64_t fault_count_ = 0;
  std::vector<Fault> faults_;  ///< the first ones
  std::uint64_t with_images_ = 0;
  std::uint64_t turned_ = 0;  ///< of these samples
  std::uint64_t empty_ = 0;   ///< values of nothing, of those that may be anything
  std::string first_empty_;
  std::uint64_t unnamed_ = 0;  ///< samples with a label that no class has
  std::string first_unnamed_;
  double seconds_ = 0;
};

void Verification::run() {
  const auto start = std::chrono::steady_clock::now();
  Progress progress("verifying", facts().entries);
  check_pages(progress);
  check_files();
  if (!on_pages()) check_samples(progress);
  check_labels();
  data_->check_unchanged();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Verification::check_pages(Progress& progress) {
  pages_ = data_->check_pages(max_faults_, [&](const Record& record) {
    progress.update(record.sample);
    look_at_value(record.value, record.sample, printable_key(chars_of(record.key)));
  });
  if (!pages_) return;
  fault_count_ = pages_->fault_count;
  for (const PageFault& fault : pages_->faults) {
    const std::string key = fault.key.empty() ? "" : fmt::format(" key {}:", fault.key);
    std::string text = fmt::format("{}: page {} at offset {}:{} {}", fault.database, fault.page,
                                   fault.offset, key, fault.text);
    Json json = text;
    if (on_pages()) {
      json = {{"database", fault.database},
              {"page", fault.page},
              {"offset", fault.offset},
              {"key", fault.key},
              {"text", fault.text}};
    }
    faults_.push_back({std::move(json), std::move(text)});
  }
}

void Verification::check_files() {
  data_->check_files([&](const Error& error) {
    if (count_fault()) faults_.push_back({Json{{"text", error.what()}}, error.what()});
  });
}

void Verification::check_samples(Progress& progress) {
  const std::uint64_t entries = facts().entries;
  const std::uint64_t step = samples_at_once(facts());
  for (std::uint64_t first = 0; first < entries; first += step) {
    progress.update(first);
    check(first, std::min(step, entries - first));
  }
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
    if (count == 1) return note(first, error);
    check(first, count / 2);
    return check(first + count / 2, count - count / 2);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) decode(i, ids[i]);
}

void Verification::decode(std::size_t position, std::uint64_t sample) {
  std::string key;
  try {
    key = printable_key(chars_of(reader_.key(position)));
    const auto value = reader_.value(position);
    if (decoder_) look_at_value(value, sample, key);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
    note(sample, error.within({.key = key}));
  }
}

/// Nothing may be what a value says, so it is no fault where values may be anything.
void Verification::look_at_value(std::span<const std::byte> value, std::uint64_t sample,
                                 const std::string& key) {
  (*decoder_)(value);
  if (const auto turns = turns_image(*codec(), value)) {
    ++with_images_;
    turned_ += *turns ? 1U : 0U;
  }
  look_at_label(sample, key);
  const bool anything = codec() != nullptr && codec()->name() == "bytes";
  if (!value.empty() || !anything) return;
  if (empty_++ == 0) first_empty_ = fmt::format("sample {} (key {})", sample, key);
}

void Verification::look_at_label(std::uint64_t sample, const std::string& key) {
  const auto classes = static_cast<std::int64_t>(facts().labels.size());
  if (classes == 0) return;
  const auto& fields = codec()->schema().fields;
  const auto at = std::ranges::find(fields, "label", &Field::name);
  if (at == fields.end() || at->elements() != 1) return;
  const auto label = integer_at(at->type, decoder_->fields()[at - fields.begin()]);
  if (!label || *label < classes) return;
  if (unnamed_++ == 0)
    first_unnamed_ = fmt::format("{} of sample {} (key {})", *label, sample, key);
}

/// A name for each is what a list of classes is for.
void Verification::check_labels() {
  if (unnamed_ == 0 || !count_fault()) return;
  const std::string text = fmt::format(
      "{}: {} samples have labels that none of its {} classes has, the first is {}; write the name "
      "of each class, one a line, into {}",
      dataset_.path, human_count(unnamed_), facts().labels.size(), first_unnamed_,
      class_names_path(data_->files().front()->path()));
  faults_.push_back({pages_ && !on_pages() ? Json(text) : Json{{"text", text}}, text});
}

std::vector<std::string> Verification::notes() const {
  std::vector<std::string> notes = facts().notes;
  if (pages_) notes.insert(notes.end(), pages_->notes.begin(), pages_->notes.end());
  if (turned_ > 0) notes.push_back(turned_text(turned_, with_images_));
  if (empty_ > 0) {
    notes.push_back(fmt::format("{} empty: {}",
                                empty_ == 1 ? "1 value is" : human_count(empty_) + " values are",
                                empty_ == 1 ? first_empty_ : first_empty_ + " is the first"));
  }
  return notes;
}

void Verification::note(std::uint64_t sample, const Error& error) {
  if (!count_fault()) return;
  const std::string text = error.within({.file = dataset_.path, .sample = sample}).what();
  faults_.push_back({pages_ ? Json(text) : Json{{"sample", sample}, {"text", text}}, text});
}

Json Verification::json() const {
  Json json{{"path", dataset_.path}, {"sound", fault_count_ == 0}};
  if (pages_) {
    json["records"] = pages_->records;
  } else {
    json["format"] = facts().format;
  }
  if (!on_pages()) json["samples"] = facts().entries;
  if (codec() || on_pages()) json["codec"] = codec() ? codec()->name() : "";
  json["schema"] = to_string(schema());
  add_arrays(schema(), json);
  if (pages_) json["pages"] = pages_->pages;
  if (on_pages()) {
    json["free_pages"] = pages_->free_pages;
    json["unreferenced_pages"] = pages_->unreferenced_pages;
  }
  if (!pages_) {
    json["bytes_read"] = reader_.counters().bytes;
    json["chunks_decoded"] = data_->counters().chunks;
    json["bytes_decoded"] = data_->counters().bytes_decoded;
  }
  json["fault_count"] = fault_count_;
  json["faults"] = Json::array();
  for (const Fault& fault : faults_) json["faults"].push_back(fault.json);
  if (const auto all = notes(); !all.empty()) json["notes"] = all;
  if (!pages_ || on_pages()) json["seconds"] = seconds_;
  return json;
}

/// "1,000 samples of image:u8[3x32x32] and 31 pages"
std::string Verification::checked() const {
  std::string shape = describe(schema());
  if (shape.empty()) shape = fmt::format("{}", fmt::join(facts().parts, ", "));
  if (shape.empty()) shape = "any size";
  std::string text = fmt::format(
      "{} samples of {}", human_count(on_pages() ? pages_->records : facts().entries), shape);
  if (pages_) text += fmt::format(" and {} pages", human_count(pages_->pages));
  return text;
}

void Verification::print() const {
  for (const std::string& note : notes()) fmt::print("note: {}\n", note);
  for (const Fault& fault : faults_) fmt::print("{}\n", fault.text);
  if (fault_count_ > faults_.size()) {
    fmt::print("and {} more: see --max-faults\n", human_count(fault_count_ - faults_.size()));
  }
  fmt::print("{}: {} checked in {:.1f} s: {}\n", dataset_.path, checked(), seconds_,
             fault_count_ == 0 ? "sound" : human_count(fault_count_) + " faults");
}

void Verification::judge() const {
  if (fault_count_ == 0) return;
  flush_output();
  throw Error(ErrorKind::corrupt,
              fmt::format("{} faults in {}", human_count(fault_count_), checked()),
              "restore the files from a copy, or leave these samples out (--order listed)",
              at_file(dataset_.path));
}

void verify(const DatasetOptions& dataset, std::uint64_t max_faults) {
  Verification verification(dataset, max_faults);
  verification.run();
  if (dataset.json) {
    print_json(verification.json());
  } else {
    verification.print();
  }
  verification.judge();
}

}  // namespace

void add_verify_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("verify", "Check a data set and decode every sample");
  auto dataset = std::make_shared<DatasetOptions>();
  auto max_faults = std::make_shared<std::uint64_t>(100);
  auto against = std::make_shared<AgainstOptions>();
  add_dataset_options(*sub, *dataset);
  sub->add_option("--max-faults", *max_faults, "Faults to list; all are counted")
      ->capture_default_str();
  CLI::Option* other = sub->add_option(
      "--against", against->path,
      "Compare with this data set instead, of any format, sample by sample: what is stored where "
      "both hold the same kind of values, else (or with --codec) what these decode to");
  sub->add_option("--against-format", against->format, "What that one is, as --format")
      ->needs(other)
      ->capture_default_str();
  sub->callback([dataset, against, max_faults] {
    run_with_answers(dataset->path, dataset->files.timeout, [&] {
      if (!against->path.empty()) return compare_data_sets(*dataset, *against, *max_faults);
      verify(*dataset, *max_faults);
    });
  });
}

}  // namespace forebay
