#include "cli/convention_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forebay/error.hpp"
#include "format/convention/database_list.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

void print_row(std::string_view name, std::string_view text) {
  fmt::print("  {:<16} {}\n", name, text);
}

std::string text_of(const Json& value) { return value.get<std::string>(); }

/// The fields, or why they are not known.
std::string fields_text(const Samples& samples) {
  try {
    const Codec& codec = samples.codec();
    if (codec.schema().fields.empty()) return "undecoded bytes";
    return fmt::format("{} ({})", to_string(codec.schema()), codec.name());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    return fmt::format("not decodable: {}", error.what());
  }
}

void print_databases(const Json& info) {
  const char* label = "databases";
  for (const Json& database : info["databases"]) {
    print_row(label, fmt::format("{}: {} records in {}", text_of(database["path"]),
                                 human_count(database["records"].get<std::uint64_t>()),
                                 human_bytes(database["stored_bytes"].get<std::uint64_t>())));
    print_row("", fmt::format("{}: {}", text_of(database["convention"]), text_of(database["why"])));
    label = "";
  }
}

}  // namespace

bool names_several_databases(const DatasetOptions& options) {
  const auto all = convention::all_databases(options.path);
  return all.size() > 1 || all[0] != options.path;
}

Samples open_for_report(const DatasetOptions& options) {
  LoaderOptions how = options.files;
  how.codec = options.codec.codec;
  how.schema = options.codec.schema;
  how.strategy = Strategy::lmm_dio_prov;  // any but auto, which keeps what it finds out
  return Samples::open(options.path, how);
}

bool is_mapped(const Samples& samples) {
  const Json info = Json::parse(samples.info());
  return samples.fingerprint().find(",part=") != std::string::npos || info["databases"].size() > 1;
}

Json convention_json(const Samples& samples) {
  const Json info = Json::parse(samples.info());
  Json metadata = Json::array();
  for (const Json& database : info["databases"]) {
    for (const Json& record : database["metadata"]) metadata.push_back(record);
  }
  return {{"name", info["convention"]},
          {"why", info["why"]},
          {"order_by", info["order_by"]},
          {"parts", info["parts"]},
          {"metadata", metadata}};
}

std::string samples_text(const Samples& samples) {
  const Json convention = convention_json(samples);
  std::string text =
      fmt::format("{}, {}", human_count(samples.entries()), text_of(convention["name"]));
  if (!samples.parts().empty()) text += fmt::format(" ({})", fmt::join(samples.parts(), ", "));
  return fmt::format("{}: {}", text, text_of(convention["why"]));
}

void inspect_databases(const DatasetOptions& options) {
  const Samples samples = open_for_report(options);
  Json info = Json::parse(samples.info());
  const std::string fields = fields_text(samples);
  if (options.json) {
    info["fields"] = fields;
    return print_json(info);
  }
  fmt::print("{}\n", options.path);
  print_row("samples", samples_text(samples));
  print_row("fields", fields);
  print_databases(info);
}

}  // namespace forebay
