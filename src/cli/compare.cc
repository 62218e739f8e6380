// forebay verify --against: the samples of two data sets, of any formats, side by side.
//
// Where both hold the same kind of values, what is stored is compared, byte by byte, and keys too
// where they are of one format. Otherwise, or where --codec asks for it, what values decode to is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/inspect_samples.hpp"
#include "cli/verify.hpp"
#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/dataset_files.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"
#include "read/data_access.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::span<const std::byte>;

/// One of the two data sets.
class Side {
 public:
  explicit Side(const DatasetOptions& options)
      : data_(open_whole(options, false)),
        reader_(*data_, {.engine = usable_engine(*data_, options.engine),
                         .bulk = {},
                         .gap_bytes = kVerifyGapBytes}) {
    const CodecOptions how = codec_of(facts(), options.codec);
    if (facts().schema.fields.empty()) decoder_.emplace(*data_, how);
  }

  const DataSet& data() const { return *data_; }
  const DataSetFacts& facts() const { return data_->facts(); }
  SampleReader& reader() { return reader_; }
  /// Of samples that are fields already, these.
  Schema schema() const {
    if (!decoder_) return facts().schema;
    return decoder_->codec() != nullptr ? decoder_->codec()->schema() : Schema();
  }
  /// Throws why no sample decodes, where none does.
  void require_codec() const {
    if (decoder_ && decoder_->problem()) throw Error(*decoder_->problem());
  }
  /// What kind of values it stores: where that is the same, they are compared as they are.
  std::string kind() const {
    const std::string codec =
        decoder_ && decoder_->codec() != nullptr ? std::string(decoder_->codec()->name()) : "";
    return fmt::format("{};{};{}", fmt::join(facts().parts, ","), codec, to_string(facts().schema));
  }
  /// The fields of the sample at `position`, behind them arrays of any length, as schema() has
  /// them; valid until the next call.
  std::span<const Bytes> decoded(std::size_t position) {
    if (!decoder_) return reader_.parts(position);
    (*decoder_)(reader_.value(position));
    fields_.assign(decoder_->fields().begin(), decoder_->fields().end());
    const auto stored = reader_.parts(position);
    for (const Field& field : decoder_->codec()->schema().ragged) {
      const auto part = std::ranges::find(facts().parts, field.name);
      fields_.push_back(stored[part == facts().parts.end() ? 0 : part - facts().parts.begin()]);
    }
    return fields_;
  }

 private:
  std::unique_ptr<const DataSet> data_;
  SampleReader reader_;
  std::optional<Decoder> decoder_;
  std::vector<Bytes> fields_;
};

/// "byte 5 of 3072", "203 bytes against 204"; empty where they are the same.
std::string difference(Bytes one, Bytes other) {
  if (std::ranges::equal(one, other)) return {};
  if (one.size() != other.size()) {
    return fmt::format("{} bytes against {}", one.size(), other.size());
  }
  const auto at = std::ranges::mismatch(one, other).in1 - one.begin();
  return fmt::format("byte {} of {}", at, one.size());
}

bool is_integer(ElementType type) {
  using enum ElementType;
  return type != f16 && type != f32 && type != f64;
}

/// Whether numbers are the same says nothing of how wide they are.
bool comparable(const Field& one, const Field& other) {
  const bool types = one.type == other.type || (is_integer(one.type) && is_integer(other.type));
  return types && one.shape == other.shape;
}

/// An only field may go by any name.
bool comparable(const Schema& one, const Schema& other) {
  const auto alike = [](const Field& a, const Field& b) { return comparable(a, b); };
  const auto same_type = [](const Field& a, const Field& b) { return a.type == b.type; };
  const auto same_name = [](const Field& a, const Field& b) { return a.name == b.name; };
  if (!std::ranges::equal(one.fields, other.fields, alike) ||
      !std::ranges::equal(one.ragged, other.ragged, same_type)) {
    return false;
  }
  const std::size_t all = one.fields.size() + one.ragged.size();
  return all == 1 || (all > 1 && std::ranges::equal(one.fields, other.fields, same_name) &&
                      std::ranges::equal(one.ragged, other.ragged, same_name));
}

/// Whether it is below zero, and its bits, widened.
using Number = std::pair<bool, std::uint64_t>;

Number number_at(ElementType type, Bytes bytes, std::size_t index) {
  const auto read = [&](auto value) -> Number {
    std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
    return {value < 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(value))};
  };
  switch (type) {
    case ElementType::u8:
      return read(std::uint8_t{});
    case ElementType::i8:
      return read(std::int8_t{});
    case ElementType::u16:
      return read(std::uint16_t{});
    case ElementType::i16:
      return read(std::int16_t{});
    case ElementType::u32:
      return read(std::uint32_t{});
    case ElementType::i32:
      return read(std::int32_t{});
    case ElementType::u64:
      return read(std::uint64_t{});
    default:
      return read(std::int64_t{});
  }
}

}  // namespace

std::optional<std::int64_t> integer_at(ElementType type, std::span<const std::byte> bytes) {
  if (!is_integer(type)) return {};
  const auto [negative, number] = number_at(type, bytes, 0);
  const auto value = static_cast<std::int64_t>(number);
  if (!negative && value < 0) return {};
  return value;
}

namespace {

/// Of one field of a sample.
std::string difference(const Field& field, Bytes one, const Field& other_field, Bytes other) {
  if (field.type == other_field.type) return difference(one, other);
  for (std::uint64_t i = 0; i < field.elements(); ++i) {
    if (number_at(field.type, one, i) == number_at(other_field.type, other, i)) continue;
    return fmt::format("number {} of {}", i, field.elements());
  }
  return {};
}

/// The first class that has another name in the other; empty where there is none. Who has no names,
/// or fewer, says nothing of the others.
std::string other_class(std::span<const std::string> mine, std::span<const std::string> theirs) {
  for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
    if (mine[i] == theirs[i]) continue;
    return fmt::format("class {} is '{}', and '{}' in the other", i, shown_name(mine[i]),
                       shown_name(theirs[i]));
  }
  return {};
}

class Comparison {
 public:
  Comparison(const DatasetOptions& dataset, const AgainstOptions& against, std::uint64_t most)
      : paths_{dataset.path, against.path},
        json_(dataset.json),
        most_(most),
        one_(dataset),
        other_(options_of(dataset, against)) {
    names_ = names_of_parts(one_.facts());
    other_class_ = other_class(one_.facts().labels, other_.facts().labels);
    decodes_ = one_.kind() != other_.kind() ||
               (dataset.codec.codec != "auto" && dataset.codec.codec != "bytes");
    if (decodes_) require_same_fields();
  }

  void run();
  void tell() const;

 private:
  static DatasetOptions options_of(const DatasetOptions& dataset, const AgainstOptions& against) {
    DatasetOptions options = dataset;
    options.path = against.path;
    options.files.format = against.format;
    return options;
  }
  static std::vector<std::string> names_of_parts(const DataSetFacts& facts);
  void require_same_fields();
  void compare(std::uint64_t first, std::uint64_t count);
  void compare_one(std::size_t position, std::uint64_t sample);
  std::string stored_difference(std::size_t position);
  std::string decoded_difference(std::size_t position);
  void note(std::uint64_t sample, const std::string& key, const std::string& text);
  bool same() const { return differing_ == 0 && same_counts() && other_class_.empty(); }
  bool same_counts() const { return one_.facts().entries == other_.facts().entries; }
  std::string summary() const;
  std::vector<std::string> notes() const;
  Json json() const;

  struct Difference {
    std::uint64_t sample = 0;
    std::string key;
    std::string text;
    std::string whole() const {
      return fmt::format("sample {}{}: {}", sample, key.empty() ? "" : " (key " + key + ")", text);
    }
  };

  std::string paths_[2];
  bool json_;
  std::uint64_t most_;
  Side one_, other_;
  std::vector<std::string> names_;  ///< of what is stored
  std::string other_class_;
  bool decodes_ = false;
  Schema schemas_[2];  ///< where it decodes
  std::uint64_t compared_ = 0, differing_ = 0;
  std::vector<Difference> differences_;  ///< the first ones
  double seconds_ = 0;
};

std::vector<std::string> Comparison::names_of_parts(const DataSetFacts& facts) {
  std::vector<std::string> names = facts.parts;
  for (const Field& field : facts.schema.fields) names.push_back(field.name);
  return names;
}

void Comparison::require_same_fields() {
  const Schema mine = one_.schema(), theirs = other_.schema();
  for (const Side* side : {&one_, &other_}) side->require_codec();
  if (!comparable(mine, theirs)) {
    throw Error(ErrorKind::usage,
                fmt::format("samples of '{}' are not to be compared with those of '{}' ({})",
                            describe(mine), describe(theirs), paths_[1]),
                "give the --codec that makes the same fields of both, or a choice of fields, "
                "'FILE#x,y'",
                {.file = paths_[0]});
  }
  schemas_[0] = mine;
  schemas_[1] = theirs;
}

void Comparison::run() {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t both = std::min(one_.facts().entries, other_.facts().entries);
  const std::uint64_t step =
      std::min(samples_at_once(one_.facts()), samples_at_once(other_.facts()));
  Progress progress("comparing", both);
  for (std::uint64_t first = 0; first < both; first += step) {
    progress.update(first);
    compare(first, std::min(step, both - first));
  }
  one_.data().check_unchanged();
  other_.data().check_unchanged();
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Halves what cannot be read until it is known which samples cannot.
void Comparison::compare(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  try {
    one_.reader().read(ids);
    other_.reader().read(ids);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::io) throw;
    if (count == 1) {
      ++compared_;
      return note(first, "", error.what());
    }
    compare(first, count / 2);
    return compare(first + count / 2, count - count / 2);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) compare_one(i, ids[i]);
}

void Comparison::compare_one(std::size_t position, std::uint64_t sample) {
  ++compared_;
  std::string key;
  try {
    const Bytes mine = one_.reader().key(position), theirs = other_.reader().key(position);
    if (!mine.empty()) key = printable_key(chars_of(mine));
    std::string text = decodes_ ? decoded_difference(position) : stored_difference(position);
    const bool keys = one_.facts().format == other_.facts().format;
    if (text.empty() && keys && !std::ranges::equal(mine, theirs)) {
      text = fmt::format("its key is {} in the other", printable_key(chars_of(theirs)));
    }
    if (!text.empty()) note(sample, key, text);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::corrupt && error.kind() != ErrorKind::unsupported) throw;
    note(sample, key, error.what());
  }
}

std::string Comparison::stored_difference(std::size_t position) {
  const auto mine = one_.reader().parts(position), theirs = other_.reader().parts(position);
  for (std::size_t p = 0; p < mine.size(); ++p) {
    const std::string text = difference(mine[p], theirs[p]);
    if (text.empty()) continue;
    return names_.empty() ? text : fmt::format("{}: {}", names_[p], text);
  }
  return {};
}

std::string Comparison::decoded_difference(std::size_t position) {
  const auto mine = one_.decoded(position), theirs = other_.decoded(position);
  const std::size_t fields = schemas_[0].fields.size();
  for (std::size_t f = 0; f < mine.size(); ++f) {
    const bool fixed = f < fields;
    const Field& field = fixed ? schemas_[0].fields[f] : schemas_[0].ragged[f - fields];
    const std::string text = fixed ? difference(field, mine[f], schemas_[1].fields[f], theirs[f])
                                   : difference(mine[f], theirs[f]);
    if (!text.empty()) return fmt::format("{}, decoded: {}", field.name, text);
  }
  return {};
}

void Comparison::note(std::uint64_t sample, const std::string& key, const std::string& text) {
  ++differing_;
  if (differences_.size() < std::max<std::uint64_t>(most_, 1)) {
    differences_.push_back({sample, key, text});
  }
}

/// "3 of 1,000 samples differ", "1,000 samples against 999"
std::string Comparison::summary() const {
  std::string text;
  if (differing_ > 0 || same_counts()) {
    text = fmt::format("{} of {} samples {}", differing_ == 0 ? "none" : human_count(differing_),
                       human_count(compared_), differing_ == 1 ? "differs" : "differ");
  }
  if (!same_counts()) {
    text += fmt::format("{}{} samples against {}", text.empty() ? "" : ", and there are ",
                        human_count(one_.facts().entries), human_count(other_.facts().entries));
  }
  return other_class_.empty() ? text : text + ", and " + other_class_;
}

std::vector<std::string> Comparison::notes() const {
  std::vector<std::string> all;
  for (const Side* side : {&one_, &other_}) {
    for (const std::string& note : side->facts().notes) {
      all.push_back(side->facts().path + ": " + note);
    }
  }
  return all;
}

Json Comparison::json() const {
  Json json{{"path", paths_[0]},
            {"against", paths_[1]},
            {"same", same()},
            {"compared_as", decodes_ ? "decoded" : "stored"},
            {"samples", one_.facts().entries},
            {"samples_against", other_.facts().entries},
            {"compared", compared_},
            {"differing", differing_},
            {"differences", Json::array()}};
  for (const Difference& one : differences_) {
    json["differences"].push_back({{"sample", one.sample}, {"key", one.key}, {"text", one.text}});
  }
  if (!other_class_.empty()) json["classes"] = other_class_;
  if (const auto all = notes(); !all.empty()) json["notes"] = all;
  json["seconds"] = seconds_;
  return json;
}

void Comparison::tell() const {
  if (json_) {
    print_json(json());
  } else {
    for (const std::string& note : notes()) fmt::print("note: {}\n", note);
    for (const Difference& one : differences_) fmt::print("{}\n", one.whole());
    if (differing_ > differences_.size()) {
      fmt::print("and {} more: see --max-faults\n", human_count(differing_ - differences_.size()));
    }
    fmt::print("{} against {}: {} in {:.1f} s, compared as {}\n", paths_[0], paths_[1], summary(),
               seconds_, decodes_ ? "they decode" : "they are stored");
  }
  if (same()) return;
  flush_output();
  std::string text = "not the same as " + paths_[1] + ": " + summary();
  if (!differences_.empty()) text += "; first " + differences_[0].whole();
  throw Error(ErrorKind::corrupt, text, "restore from the one that is right", at_file(paths_[0]));
}

}  // namespace

void compare_data_sets(const DatasetOptions& dataset, const AgainstOptions& against,
                       std::uint64_t most) {
  Comparison comparison(dataset, against, most);
  comparison.run();
  comparison.tell();
}

}  // namespace forebay
