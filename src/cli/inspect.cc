// forebay inspect: what a data set holds and what reading it will cost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/dataset_options.hpp"
#include "cli/inspect_samples.hpp"
#include "forebay/error.hpp"
#include "program/output.hpp"
#include "program/run.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.get<std::string>(); }
std::string count_of(const Json& value) { return human_count(value.get<std::uint64_t>()); }
std::string bytes_of(const Json& value) { return human_bytes(value.get<std::uint64_t>()); }

/// Which records are samples, of DataSet::info().
/// {"name": "grouped", "why": ..., "order_by": ..., "parts": [...], "metadata": [...]}
Json convention_json(const Json& info) {
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

/// "120, grouped (image, label): why"
std::string samples_text(const Json& samples, const Json& convention) {
  std::string text = fmt::format("{}, {}", count_of(samples), text_of(convention["name"]));
  const auto parts = convention["parts"].get<std::vector<std::string>>();
  if (!parts.empty()) text += fmt::format(" ({})", fmt::join(parts, ", "));
  return fmt::format("{}: {}", text, text_of(convention["why"]));
}

/// A data set, and why its records are not the samples that they should be, if so.
struct Opened {
  std::unique_ptr<const DataSet> data;
  std::string problem;
};

Opened open(const DatasetOptions& options) {
  try {
    return {open_whole(options, true), {}};
  } catch (const Error& error) {
    const bool plain = options.files.convention == ConventionName::plain &&
                       options.files.order_by == KeyOrder::key;
    if (error.kind() == ErrorKind::usage || plain) throw;
    DatasetOptions records = options;
    records.files.convention = ConventionName::plain;
    records.files.order_by = KeyOrder::key;
    return {open_whole(records, true), error.what()};
  }
}

Json to_json(const Schema& schema) {
  Json fields = Json::array();
  for (const Field& field : schema.fields) {
    fields.push_back(
        {{"name", field.name}, {"type", to_string(field.type)}, {"shape", field.shape}});
  }
  return fields;
}

/// What the pages say, with what is known of samples.
Json complete(Json pages, const Opened& opened, const Fields& fields) {
  pages["codec"] = fields.codec;
  pages["schema"] = to_string(fields.schema);
  pages["fields"] = to_json(fields.schema);
  add_arrays(fields.schema, pages);
  if (!opened.problem.empty()) {
    pages["convention_problem"] = opened.problem;
  } else if (pages["entries"] > 0) {
    pages["samples"] = opened.data->facts().entries;
    pages["convention"] = convention_json(Json::parse(opened.data->info()));
  }
  if (!fields.problem.empty()) pages["fields_problem"] = fields.problem;
  add_images(fields, pages);
  const std::vector<std::string>& classes = opened.data->facts().labels;
  if (!classes.empty()) pages["classes"] = classes;
  return pages;
}

std::string sizes_text(const Json& sizes) {
  if (sizes["histogram"].empty()) return "none";
  if (sizes["min"] == sizes["max"]) return fmt::format("{} bytes each", count_of(sizes["min"]));
  return fmt::format("{} to {} bytes, mean {:.1f}", count_of(sizes["min"]), count_of(sizes["max"]),
                     sizes["mean"].get<double>());
}

void print_classes(const DataSet& data) {
  const auto& classes = data.facts().labels;
  if (!classes.empty()) print_row("classes", classes_text(classes));
}

void print_records(const Json& pages, const Opened& opened, const Fields& fields) {
  print_row("records", count_of(pages["entries"]));
  if (pages["entries"] == 0) return;
  const Json& values = pages["values"];
  print_row("keys",
            fmt::format("{}; {}", sizes_text(pages["keys"]), text_of(pages["key_pattern"])));
  print_row("values", fmt::format("{}; {} in all", sizes_text(values), bytes_of(values["total"])));
  print_row("samples", opened.problem.empty() ? samples_text(pages["samples"], pages["convention"])
                                              : "not known: " + opened.problem);
  print_row("fields", describe(fields));
  print_images(fields);
  print_classes(*opened.data);
  print_row("records a leaf", fmt::format("{:.1f}", pages["records_per_leaf"].get<double>()));
  print_row("amplification", fmt::format("{:.2f} bytes read for each byte of value",
                                         pages["read_amplification"].get<double>()));
}

void print_file(const Json& pages) {
  const Json& counts = pages["pages"];
  print_row("tree",
            fmt::format("depth {}, pages of {} bytes, transaction {}", pages["depth"].dump(),
                        count_of(pages["page_size"]), pages["transaction"].dump()));
  print_row("pages", fmt::format("{} leaf, {} overflow, {} branch, {} free, {} meta",
                                 count_of(counts["leaf"]), count_of(counts["overflow"]),
                                 count_of(counts["branch"]), count_of(counts["free"]),
                                 count_of(counts["meta"])));
  if (counts["unaccounted"] > 0) {
    print_row("", fmt::format("{} pages belong to nothing: see 'forebay verify'",
                              count_of(counts["unaccounted"])));
  }
  print_row("file", fmt::format("{}, {} of it in use", bytes_of(pages["file_bytes"]),
                                bytes_of(pages["used_bytes"])));
  if (pages.contains("damaged_meta")) print_row("damaged", text_of(pages["damaged_meta"]));
}

void print_named(const Json& pages) {
  const Json& all = pages["named_databases"];
  if (all.empty()) return print_row("named databases", "none");
  const char* label = "named databases";
  for (const Json& one : all) {
    print_row(label, fmt::format("{} ({} records)", printable_key(text_of(one["name"])),
                                 count_of(one["entries"])));
    label = "";
  }
  if (pages["entries"] == 0 && text_of(pages["name"]).empty()) {
    print_row("",
              fmt::format("open one as '{}#{}'", text_of(pages["path"]), text_of(all[0]["name"])));
  }
}

void print_histogram(const Json& sizes) {
  if (sizes["min"] == sizes["max"]) return;
  constexpr double kWidth = 40;
  const auto count = [](const Json& bucket) { return bucket["count"].get<std::uint64_t>(); };
  std::uint64_t most = 0;
  for (const Json& bucket : sizes["histogram"]) most = std::max(most, count(bucket));
  fmt::print("\n  value bytes                 records\n");
  for (const Json& bucket : sizes["histogram"]) {
    const auto bar = static_cast<double>(count(bucket)) / static_cast<double>(most) * kWidth;
    fmt::print("  {:>11} - {:<11} {:>11} {}\n", count_of(bucket["from"]), count_of(bucket["to"]),
               human_count(count(bucket)), std::string(static_cast<std::size_t>(bar), '#'));
  }
}

/// Of files that are made of pages.
void inspect_pages(const DatasetOptions& options, const Opened& opened, Json pages) {
  const Fields fields = pages["entries"] > 0 ? fields_of(*opened.data, options.codec) : Fields{};
  pages = complete(std::move(pages), opened, fields);
  if (options.json) return print_json(pages);
  fmt::print("{}\n", options.path);
  print_row("format", opened.data->facts().format);
  print_records(pages, opened, fields);
  print_file(pages);
  print_named(pages);
  print_row("sidecar", text_of(pages["sidecar"]));
  print_histogram(pages["values"]);
}

void print_databases(const Json& info) {
  const char* label = "databases";
  for (const Json& database : info["databases"]) {
    print_row(label,
              fmt::format("{}: {} records in {}", text_of(database["path"]),
                          count_of(database["records"]), bytes_of(database["stored_bytes"])));
    print_row("", fmt::format("{}: {}", text_of(database["convention"]), text_of(database["why"])));
    label = "";
  }
}

/// Of several databases together.
void inspect_databases(const DatasetOptions& options, const DataSet& data, Json info) {
  const Fields fields = fields_of(data, options.codec);
  if (options.json) {
    info["fields"] = describe(fields);
    add_images(fields, info);
    if (info.contains("labels")) info["classes"] = info["labels"];
    return print_json(info);
  }
  fmt::print("{}\n", options.path);
  print_row("samples", samples_text(info["entries"], convention_json(info)));
  print_row("fields", describe(fields));
  print_images(fields);
  print_classes(data);
  print_databases(info);
}

void inspect(const DatasetOptions& options, const InspectSamplesOptions& samples) {
  const Opened opened = open(options);
  if (!samples.dump.empty()) {
    if (opened.problem.empty()) return inspect_samples(options, *opened.data, samples);
    throw Error(ErrorKind::usage, "its samples are not known: " + opened.problem,
                "give --convention plain to dump records", {.file = options.path});
  }
  const std::string pages = opened.data->look_at_pages();
  if (!pages.empty()) return inspect_pages(options, opened, Json::parse(pages));
  Json info = Json::parse(opened.data->info());
  if (info.contains("databases")) {
    return inspect_databases(options, *opened.data, std::move(info));
  }
  inspect_samples(options, *opened.data, samples);
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("inspect", "Show what a data set holds");
  auto options = std::make_shared<DatasetOptions>();
  auto samples = std::make_shared<InspectSamplesOptions>();
  add_dataset_options(*sub, *options);
  add_inspect_samples_options(*sub, *samples);
  sub->callback([options, samples] {
    run_with_answers(options->path, options->files.timeout, [&] { inspect(*options, *samples); });
  });
}

}  // namespace forebay
