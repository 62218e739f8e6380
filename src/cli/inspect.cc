// forebay inspect: what a data set holds and what reading it will cost.
#include "format/lmdb/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "cli/sample_reports.hpp"
#include "forebay/error.hpp"
#include "forebay/samples.hpp"
#include "format/lmdb/provenance/sidecar.hpp"
#include "program/output.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// The fields of the records, or why they are not known.
struct Fields {
  std::string codec;
  Schema schema;
  std::string problem;
};

struct Inspection {
  lmdb::DatabaseReport report;
  Fields fields;
  std::string sidecar;
  Json convention;  ///< empty where there are no records, or it is not known
  std::uint64_t samples = 0;
  std::string samples_text;
  std::string convention_problem;
};

/// Of the codec that `find_codec` finds, if any.
template <typename FindCodec>
Fields fields_by(const FindCodec& find_codec) {
  try {
    const auto& codec = find_codec();
    if (codec == nullptr) return {};
    return {.codec = std::string(codec->name()), .schema = codec->schema(), .problem = {}};
  } catch (const Error& error) {
    // A wrong request is the caller's; values that nobody can decode are something to report.
    if (error.kind() == ErrorKind::usage) throw;
    return {.codec = {}, .schema = {}, .problem = error.what()};
  }
}

Fields fields_of(const Samples& samples) {
  return fields_by([&] { return &samples.codec(); });
}

/// Form of the sidecar beside the data, "none", or why it is not used.
std::string sidecar_state(const std::string& dataset, lmdb::Database& database) {
  const std::string file = lmdb::sidecar_path(lmdb::resolve_dataset_path(dataset));
  if (file.empty() || !std::filesystem::exists(file)) return "none";
  const lmdb::TreeFacts facts = lmdb::facts_of(database);
  try {
    const auto bytes =
        read_small_file(file, lmdb::most_sidecar_bytes(facts.entries, facts.leaf_pages));
    const auto loaded = lmdb::load_sidecar(bytes, facts);
    return loaded ? loaded.leaves->form() : "not used: " + loaded.problem;
  } catch (const Error& error) {
    return "not used: " + error.happened();
  }
}

std::string text_of(const Json& value) { return value.get<std::string>(); }

/// Opens the samples as --convention, --order-by and --codec say; reads by plain reads, and keeps
/// nothing in the user's cache. Throws as Samples::open.
Samples open_for_report(const DatasetOptions& options) {
  LoaderOptions how = options.files;
  how.codec = options.codec.codec;
  how.schema = options.codec.schema;
  how.strategy = Strategy::lmm_dio_prov;  // any but auto, which keeps what it finds out
  return Samples::open(options.path, how);
}

/// Whether a sample is something else than the record of its number.
bool is_mapped(const Samples& samples) {
  const Json info = Json::parse(samples.info());
  return samples.fingerprint().find(",part=") != std::string::npos || info["databases"].size() > 1;
}

/// {"name": "grouped", "why": ..., "order_by": ..., "parts": [...], "metadata": [...]}
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

/// "120 (grouped: image, label)"
std::string samples_text(const Samples& samples) {
  const Json convention = convention_json(samples);
  std::string text =
      fmt::format("{}, {}", human_count(samples.entries()), text_of(convention["name"]));
  if (!samples.parts().empty()) text += fmt::format(" ({})", fmt::join(samples.parts(), ", "));
  return fmt::format("{}: {}", text, text_of(convention["why"]));
}

/// How records make samples, and the fields of these where they are not single records.
void look_at_samples(const DatasetOptions& options, Inspection& result) {
  try {
    const Samples samples = open_for_report(options);
    result.convention = convention_json(samples);
    result.samples = samples.entries();
    result.samples_text = samples_text(samples);
    if (is_mapped(samples) && samples.entries() > 0) result.fields = fields_of(samples);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    result.convention_problem = error.what();
  }
}

Inspection look_at(const DatasetOptions& options) {
  Inspection result;
  {
    lmdb::Database database = open_dataset(options);
    result.report = lmdb::inspect(database);
    result.report.path = options.path;
    if (result.report.entries > 0)
      result.fields = fields_by([&] { return codec_of_first(database, options.codec); });
    result.sidecar = sidecar_state(options.path, database);
    database.check_unchanged();
  }
  if (result.report.entries > 0) look_at_samples(options, result);
  return result;
}

/// Bounds of bucket `i` of a SizeSummary's histogram.
std::pair<std::uint64_t, std::uint64_t> bucket_bounds(std::size_t i) {
  if (i == 0) return {0, 0};
  return {std::uint64_t{1} << (i - 1), (std::uint64_t{1} << i) - 1};
}

Json to_json(const lmdb::SizeSummary& sizes) {
  Json histogram = Json::array();
  for (std::size_t i = 0; i < sizes.histogram.size(); ++i) {
    const auto [from, to] = bucket_bounds(i);
    if (sizes.histogram[i] > 0) {
      histogram.push_back({{"from", from}, {"to", to}, {"count", sizes.histogram[i]}});
    }
  }
  return {{"min", sizes.min},
          {"mean", sizes.mean()},
          {"max", sizes.max},
          {"total", sizes.total},
          {"histogram", histogram}};
}

Json to_json(const lmdb::PageSummary& pages) {
  return {{"meta", pages.meta}, {"branch", pages.branch},
          {"leaf", pages.leaf}, {"overflow", pages.overflow},
          {"free", pages.free}, {"unaccounted", pages.unaccounted}};
}

Json to_json(const Schema& schema) {
  Json fields = Json::array();
  for (const Field& field : schema.fields) {
    fields.push_back(
        {{"name", field.name}, {"type", to_string(field.type)}, {"shape", field.shape}});
  }
  return fields;
}

Json to_json(const Inspection& inspection) {
  const lmdb::DatabaseReport& report = inspection.report;
  Json named = Json::array();
  for (const auto& database : report.named) {
    named.push_back({{"name", database.name}, {"entries", database.header.entries}});
  }
  Json json{{"path", report.path},
            {"name", report.name},
            {"entries", report.entries},
            {"keys", to_json(report.keys)},
            {"key_pattern", report.key_pattern},
            {"values", to_json(report.values)},
            {"codec", inspection.fields.codec},
            {"schema", to_string(inspection.fields.schema)},
            {"fields", to_json(inspection.fields.schema)},
            {"page_size", report.page_size},
            {"depth", report.depth},
            {"transaction", report.txn_id},
            {"pages", to_json(report.pages)},
            {"used_bytes", report.used_bytes},
            {"file_bytes", report.file_bytes},
            {"records_per_leaf", report.records_per_leaf},
            {"read_amplification", report.read_amplification},
            {"named_databases", named},
            {"sidecar", inspection.sidecar},
            {"samples", inspection.samples},
            {"convention", inspection.convention}};
  if (!inspection.convention_problem.empty()) {
    json["convention_problem"] = inspection.convention_problem;
  }
  if (!inspection.fields.problem.empty()) json["fields_problem"] = inspection.fields.problem;
  if (!report.damaged_meta.empty()) json["damaged_meta"] = report.damaged_meta;
  return json;
}

std::string describe(const lmdb::SizeSummary& sizes) {
  if (sizes.count == 0) return "none";
  if (sizes.min == sizes.max) return fmt::format("{} bytes each", human_count(sizes.min));
  return fmt::format("{} to {} bytes, mean {:.1f}", human_count(sizes.min), human_count(sizes.max),
                     sizes.mean());
}

std::string describe(const Fields& fields) {
  if (!fields.problem.empty()) return "not decodable: " + fields.problem;
  if (fields.schema.fields.empty()) return "undecoded bytes";
  return fmt::format("{} ({})", to_string(fields.schema), fields.codec);
}

void print_records(const Inspection& inspection) {
  const lmdb::DatabaseReport& report = inspection.report;
  print_row("records", human_count(report.entries));
  if (report.entries == 0) return;
  print_row("keys", fmt::format("{}; {}", describe(report.keys), report.key_pattern));
  print_row("values", fmt::format("{}; {} in all", describe(report.values),
                                  human_bytes(report.values.total)));
  print_row("samples", inspection.convention_problem.empty()
                           ? inspection.samples_text
                           : "not known: " + inspection.convention_problem);
  print_row("fields", describe(inspection.fields));
  print_row("records a leaf", fmt::format("{:.1f}", report.records_per_leaf));
  print_row("amplification",
            fmt::format("{:.2f} bytes read for each byte of value", report.read_amplification));
}

void print_file(const lmdb::DatabaseReport& report) {
  const lmdb::PageSummary& pages = report.pages;
  print_row("tree", fmt::format("depth {}, pages of {} bytes, transaction {}", report.depth,
                                human_count(report.page_size), report.txn_id));
  print_row("pages", fmt::format("{} leaf, {} overflow, {} branch, {} free, {} meta",
                                 human_count(pages.leaf), human_count(pages.overflow),
                                 human_count(pages.branch), human_count(pages.free), pages.meta));
  if (pages.unaccounted > 0) {
    print_row("", fmt::format("{} pages belong to nothing: see 'forebay verify'",
                              human_count(pages.unaccounted)));
  }
  print_row("file", fmt::format("{}, {} of it in use", human_bytes(report.file_bytes),
                                human_bytes(report.used_bytes)));
  if (!report.damaged_meta.empty()) print_row("damaged", report.damaged_meta);
}

void print_named(const lmdb::DatabaseReport& report) {
  if (report.named.empty()) return print_row("named databases", "none");
  const char* label = "named databases";
  for (const auto& database : report.named) {
    print_row(label, fmt::format("{} ({} records)", printable_key(database.name),
                                 human_count(database.header.entries)));
    label = "";
  }
  if (report.entries == 0 && report.name.empty()) {
    print_row("", fmt::format("open one as '{}#{}'", report.path, report.named.front().name));
  }
}

void print_histogram(const lmdb::SizeSummary& sizes) {
  if (sizes.count == 0 || sizes.min == sizes.max) return;
  constexpr std::uint64_t kWidth = 40;
  const std::uint64_t most = *std::ranges::max_element(sizes.histogram);
  fmt::print("\n  value bytes                 records\n");
  for (std::size_t i = 0; i < sizes.histogram.size(); ++i) {
    const std::uint64_t count = sizes.histogram[i];
    if (count == 0) continue;
    const auto [from, to] = bucket_bounds(i);
    const auto bar = static_cast<double>(count) / static_cast<double>(most) * kWidth;
    fmt::print("  {:>11} - {:<11} {:>11} {}\n", human_count(from), human_count(to),
               human_count(count), std::string(static_cast<std::size_t>(bar), '#'));
  }
}

void inspect_dataset(const DatasetOptions& options) {
  const Inspection inspection = look_at(options);
  if (options.json) return print_json(to_json(inspection));
  fmt::print("{}\n", options.path);
  print_records(inspection);
  print_file(inspection.report);
  print_named(inspection.report);
  print_row("sidecar", inspection.sidecar);
  print_histogram(inspection.report.values);
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

void inspect_databases(const DatasetOptions& options) {
  const Samples samples = open_for_report(options);
  Json info = Json::parse(samples.info());
  const std::string fields = describe(fields_of(samples));
  if (options.json) {
    info["fields"] = fields;
    return print_json(info);
  }
  fmt::print("{}\n", options.path);
  print_row("samples", samples_text(samples));
  print_row("fields", fields);
  print_databases(info);
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("inspect", "Show what a data set holds");
  auto options = std::make_shared<DatasetOptions>();
  auto samples = std::make_shared<InspectSamplesOptions>();
  add_dataset_options(*sub, *options);
  add_inspect_samples_options(*sub, *samples);
  sub->callback([options, samples] {
    if (is_sample_set(*options)) return inspect_samples(*options, *samples);
    if (names_several_databases(*options)) return inspect_databases(*options);
    inspect_dataset(*options);
  });
}

}  // namespace forebay
