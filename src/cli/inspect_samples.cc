#include "cli/inspect_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/codecs.hpp"
#include "format/dataset_files.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"
#include "read/data_access.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

// Samples in memory at a time while they are dumped.
constexpr std::uint64_t kDumpBytes = std::uint64_t{64} << 20;

/// What one stretch of consecutive samples costs.
struct ReadCost {
  std::uint64_t samples = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_used = 0;
  std::uint64_t decode_units = 0;
};

std::vector<std::uint64_t> consecutive(std::uint64_t count) {
  std::vector<std::uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), std::uint64_t{0});
  return ids;
}

ReadCost cost_of_group(const DataSet& data, std::uint64_t group) {
  ReadCost cost{.samples = std::min(group, data.facts().entries)};
  const auto plan = data.plan(consecutive(cost.samples));
  cost.requests = plan->extents().size();
  for (const FileExtent& extent : plan->extents()) cost.bytes_read += extent.length;
  cost.bytes_used = cost.samples * data.facts().sample_bytes;
  cost.decode_units = plan->units();
  return cost;
}

Json parts_json(const DataSetFacts& facts) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < facts.stored.size(); ++i) {
    Json part;
    if (facts.schema.fields.empty()) {
      part["name"] = facts.parts.empty() ? "" : facts.parts[i];
    } else {
      const Field& field = facts.schema.fields[i];
      part = {{"name", field.name}, {"type", to_string(field.type)}, {"shape", field.shape}};
    }
    part["storage"] = facts.stored[i].how;
    part["in_place"] = facts.stored[i].in_place;
    parts.push_back(std::move(part));
  }
  return parts;
}

Json to_json(const DataSet& data, const Fields& decoded, const ReadCost& cost) {
  const DataSetFacts& facts = data.facts();
  Json files = Json::array();
  for (std::size_t i = 0; i < data.files().size(); ++i) {
    Json file{{"path", data.files()[i]->path()}};
    if (!facts.of_files.empty()) file["samples"] = facts.of_files[i];
    files.push_back(std::move(file));
  }
  Json json{{"path", facts.path}, {"format", facts.format}, {"entries", facts.entries}};
  const bool fields = !facts.schema.fields.empty();
  if (fields) json["schema"] = to_string(facts.schema);
  json[fields ? "fields" : "parts"] = parts_json(facts);
  if (!fields) {
    json["codec"] = decoded.codec;
    json["schema"] = to_string(decoded.schema);
    add_arrays(decoded.schema, json);
  }
  if (!decoded.problem.empty()) json["fields_problem"] = decoded.problem;
  json["sample_bytes"] = facts.sample_bytes;
  json["files"] = files;
  json["file_bytes"] = data.stored_bytes();
  json["fingerprint"] = facts.fingerprint;
  add_images(decoded, json);
  if (!facts.labels.empty()) json["classes"] = facts.labels;
  if (!facts.notes.empty()) json["notes"] = facts.notes;
  json["group"] = {{"samples", cost.samples},
                   {"requests", cost.requests},
                   {"bytes_read", cost.bytes_read},
                   {"bytes_used", cost.bytes_used},
                   {"decode_units", cost.decode_units}};
  return json;
}

std::string part_text(const DataSetFacts& facts, std::size_t number) {
  const StoredPart& stored = facts.stored[number];
  std::string name = "values";
  if (!facts.schema.fields.empty()) name = to_string(Schema{{facts.schema.fields[number]}});
  if (!facts.parts.empty()) name = facts.parts[number];
  return fmt::format("{}: {}{}", name, stored.how, stored.in_place ? "" : "; has to be decoded");
}

void print_facts(const DataSet& data, const Fields& decoded, const ReadCost& cost) {
  const DataSetFacts& facts = data.facts();
  const bool fields = !facts.schema.fields.empty();
  fmt::print("{}\n", facts.path);
  print_row("format", facts.format);
  print_row("samples", fmt::format("{} of {}{}", human_count(facts.entries),
                                   human_bytes(facts.sample_bytes), fields ? "" : " on average"));
  for (std::size_t i = 0; i < facts.stored.size(); ++i) {
    print_row(i > 0 ? "" : fields ? "fields" : "parts", part_text(facts, i));
  }
  if (!fields) print_row("fields", describe(decoded));
  if (!facts.labels.empty()) print_row("classes", classes_text(facts.labels));
  print_row("files", fmt::format("{}, {} in all", human_count(data.files().size()),
                                 human_bytes(data.stored_bytes())));
  print_row("reading", fmt::format("the first {} samples: {} reads of {} in all for {} of samples, "
                                   "{} pieces to decode",
                                   human_count(cost.samples), human_count(cost.requests),
                                   human_bytes(cost.bytes_read), human_bytes(cost.bytes_used),
                                   human_count(cost.decode_units)));
  print_images(decoded);
  for (const std::string& note : facts.notes) print_row("note", note);
}

std::vector<std::uint64_t> parse_ids(const std::string& text, std::uint64_t entries) {
  if (text == "all") return consecutive(entries);
  std::vector<std::uint64_t> ids;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    ids.push_back(parse_count(text.substr(begin, end - begin), "--dump"));
    begin = end + 1;
  }
  return ids;
}

/// The values, one behind the other, as they are delivered.
void dump(const DataSet& data, Engine engine, const InspectSamplesOptions& options) {
  const auto ids = parse_ids(options.dump, data.facts().entries);
  SampleReader reader(data, {.engine = engine, .bulk = {}, .gap_bytes = 0});
  const std::uint64_t fitting = kDumpBytes / std::max<std::uint64_t>(1, data.facts().sample_bytes);
  const std::uint64_t step = std::max<std::uint64_t>(1, std::min(options.group, fitting));
  for (std::uint64_t at = 0; at < ids.size(); at += step) {
    reader.read(std::span(ids).subspan(at, std::min<std::uint64_t>(step, ids.size() - at)));
    for (std::size_t i = 0; i < reader.size(); ++i) {
      print_bytes(reader.value(i));
    }
  }
}

/// Of the first samples.
void look_at_images(const DataSet& data, const Codec& codec, Fields& fields) {
  constexpr std::uint64_t kMost = 64;
  for (std::uint64_t id = 0; id < std::min(kMost, data.facts().entries); ++id) {
    try {
      data.read_one(id, [&](const Record& record) {
        const auto turns = turns_image(codec, record.value);
        if (!turns) return;
        ++fields.with_images;
        fields.turned += *turns ? 1U : 0U;
        const std::string other = other_kind(codec, record.value);
        if (!other.empty() && fields.other_kind++ == 0) {
          fields.first_other = fmt::format("sample {}: {}", id, other);
        }
      });
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::changed) throw;  // else verify tells what is damaged
    }
  }
}

}  // namespace

Fields fields_of(const DataSet& data, const CodecOptions& options) {
  const auto read = [&](std::uint64_t id, const RecordSink& sink) { data.read_one(id, sink); };
  try {
    const CodecOptions how = codec_of(data.facts(), options);
    const TellingSample telling = find_telling_sample(how, data.facts().entries, read);
    const auto codec = telling.make(data.facts().path);
    Fields fields{.codec = std::string(codec->name()), .schema = codec->schema(), .problem = {}};
    if (turns_image(*codec, bytes_of(telling.value))) look_at_images(data, *codec, fields);
    return fields;
  } catch (const Error& error) {
    // A wrong request is the caller's; values that nobody can decode are something to report.
    if (error.kind() == ErrorKind::usage) throw;
    return {.codec = {}, .schema = {}, .problem = error.what()};
  }
}

std::string describe(const Fields& fields) {
  if (!fields.problem.empty()) return "not decodable: " + fields.problem;
  const std::string text = describe(fields.schema);
  return text.empty() ? "undecoded bytes" : fmt::format("{} ({})", text, fields.codec);
}

std::string describe(const Schema& schema) {
  std::string text = to_string(schema);
  for (const Field& field : schema.ragged) {
    text += fmt::format("{}{}{}[] of any length", text.empty() ? "" : ",", field.name,
                        (field.name.empty() ? "" : ":") + std::string(to_string(field.type)));
  }
  return text;
}

void add_arrays(const Schema& schema, nlohmann::ordered_json& json) {
  for (const Field& field : schema.ragged) {
    json["any_length"].push_back({{"name", field.name}, {"type", to_string(field.type)}});
  }
}

std::string turned_text(std::uint64_t turned, std::uint64_t with_images) {
  return fmt::format(
      "{} of {} samples with images that were looked at are turned upright, as EXIF says: with "
      "--codec auto:orientation=stored they are read as they lie in their files",
      human_count(turned), human_count(with_images));
}

void print_images(const Fields& fields) {
  if (fields.turned > 0) print_row("note", turned_text(fields.turned, fields.with_images));
  if (fields.other_kind == 0) return;
  print_row("note", fmt::format("{} of {} samples with images that were looked at {} another depth "
                                "or other channels, and will not decode: {}",
                                human_count(fields.other_kind), human_count(fields.with_images),
                                fields.other_kind == 1 ? "has" : "have", fields.first_other));
}

void add_images(const Fields& fields, nlohmann::ordered_json& json) {
  if (fields.turned > 0) {
    json["turned"] = {{"samples", fields.turned}, {"of", fields.with_images}};
  }
  if (fields.other_kind > 0) {
    json["other_kind"] = {
        {"samples", fields.other_kind}, {"of", fields.with_images}, {"first", fields.first_other}};
  }
}

std::string classes_text(std::span<const std::string> names) {
  constexpr std::size_t kMostShown = 20;
  std::string text;
  for (const std::string& name : names.first(std::min(kMostShown, names.size()))) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", shown_name(name));
  }
  return fmt::format("{}: {}{}", human_count(names.size()), text,
                     names.size() > kMostShown ? ", ..." : "");
}

void add_inspect_samples_options(CLI::App& app, InspectSamplesOptions& options) {
  app.add_option("--group", options.group, "Of files with fields: samples to count the reads of")
      ->capture_default_str();
  app.add_option(
      "--dump", options.dump,
      "Write the values of these samples (0,5,3 or all) to stdout, one behind the other, "
      "as loaders deliver them");
}

void inspect_samples(const DatasetOptions& dataset, const DataSet& data,
                     const InspectSamplesOptions& options) {
  if (!options.dump.empty()) {
    return dump(data, usable_engine(data, dataset.engine), options);
  }
  const ReadCost cost = cost_of_group(data, options.group);
  Fields decoded;
  // A codec that the samples cannot have is refused for fields as well, which need none.
  static_cast<void>(codec_of(data.facts(), dataset.codec));
  if (data.facts().schema.fields.empty()) decoded = fields_of(data, dataset.codec);
  if (dataset.json) return print_json(to_json(data, decoded, cost));
  print_facts(data, decoded, cost);
}

}  // namespace forebay
