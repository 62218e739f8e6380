#include "cli/inspect_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/number_text.hpp"
#include "forebay/error.hpp"
#include "format/sample_reader.hpp"
#include "program/output.hpp"

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

ReadCost cost_of_group(const SampleSource& source, std::uint64_t group) {
  ReadCost cost{.samples = std::min(group, source.entries())};
  const SamplePlan plan = source.plan(consecutive(cost.samples));
  cost.requests = plan.extents().size();
  for (const FileExtent& extent : plan.extents()) cost.bytes_read += extent.length;
  cost.bytes_used = cost.samples * source.sample_bytes();
  cost.decode_units = plan.units();
  return cost;
}

/// How the field is stored in the first file.
std::string storage_of(const SampleSource& source, std::size_t field) {
  return source.parts().empty() ? "" : source.parts()[0].fields[field].storage->describe();
}

bool in_place(const SampleSource& source, std::size_t field) {
  return std::ranges::all_of(source.parts(), [&](const SamplePart& part) {
    return part.fields[field].storage->in_place();
  });
}

Json to_json(const SampleSource& source, const ReadCost& cost) {
  Json fields = Json::array();
  for (std::size_t i = 0; i < source.schema().fields.size(); ++i) {
    const Field& field = source.schema().fields[i];
    fields.push_back({{"name", field.name},
                      {"type", to_string(field.type)},
                      {"shape", field.shape},
                      {"storage", storage_of(source, i)},
                      {"in_place", in_place(source, i)}});
  }
  Json files = Json::array();
  for (std::size_t i = 0; i < source.files().size(); ++i) {
    files.push_back({{"path", source.files()[i]->path()}, {"samples", source.parts()[i].rows}});
  }
  return {{"path", source.path()},
          {"format", source.format()},
          {"entries", source.entries()},
          {"schema", to_string(source.schema())},
          {"fields", fields},
          {"sample_bytes", source.sample_bytes()},
          {"files", files},
          {"file_bytes", source.stored_bytes()},
          {"fingerprint", source.fingerprint().text},
          {"group",
           {{"samples", cost.samples},
            {"requests", cost.requests},
            {"bytes_read", cost.bytes_read},
            {"bytes_used", cost.bytes_used},
            {"decode_units", cost.decode_units}}}};
}

void print_row(std::string_view name, std::string_view text) {
  fmt::print("  {:<16} {}\n", name, text);
}

void print_source(const SampleSource& source, const ReadCost& cost) {
  fmt::print("{}\n", source.path());
  print_row("format", source.format());
  print_row("samples", fmt::format("{} of {}", human_count(source.entries()),
                                   human_bytes(source.sample_bytes())));
  for (std::size_t i = 0; i < source.schema().fields.size(); ++i) {
    const Schema one{{source.schema().fields[i]}};
    print_row(i == 0 ? "fields" : "",
              fmt::format("{}: {}{}", to_string(one), storage_of(source, i),
                          in_place(source, i) ? "" : "; has to be decoded"));
  }
  print_row("files", fmt::format("{}, {} in all", human_count(source.files().size()),
                                 human_bytes(source.stored_bytes())));
  print_row("reading", fmt::format("the first {} samples: {} reads of {} in all for {} of samples, "
                                   "{} pieces to decode",
                                   human_count(cost.samples), human_count(cost.requests),
                                   human_bytes(cost.bytes_read), human_bytes(cost.bytes_used),
                                   human_count(cost.decode_units)));
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

/// The samples' fields, one behind the other, as they are in memory.
void dump(const SampleSource& source, Engine engine, const InspectSamplesOptions& options) {
  const auto ids = parse_ids(options.dump, source.entries());
  SampleReader reader(source, {.engine = engine, .bulk = {}, .gap_bytes = 0});
  const std::uint64_t fitting = kDumpBytes / std::max<std::uint64_t>(1, source.sample_bytes());
  const std::uint64_t step = std::max<std::uint64_t>(1, std::min(options.group, fitting));
  for (std::uint64_t at = 0; at < ids.size(); at += step) {
    reader.read(std::span(ids).subspan(at, std::min<std::uint64_t>(step, ids.size() - at)));
    for (std::size_t i = 0; i < reader.size(); ++i) {
      for (std::size_t f = 0; f < source.schema().fields.size(); ++f) {
        const auto value = reader.value(i, f);
        std::fwrite(value.data(), 1, value.size(), stdout);
      }
    }
  }
}

}  // namespace

void add_inspect_samples_options(CLI::App& app, InspectSamplesOptions& options) {
  app.add_option("--group", options.group, "Of files with fields: samples to count the reads of")
      ->capture_default_str();
  app.add_option("--dump", options.dump,
                 "Of files with fields: write the bytes of these samples (0,5,3 or all) to stdout");
}

void inspect_samples(const DatasetOptions& dataset, const InspectSamplesOptions& options) {
  const auto source = open_sample_set(dataset);
  if (!options.dump.empty())
    return dump(*source, usable_engine(dataset.path, dataset.engine), options);
  const ReadCost cost = cost_of_group(*source, options.group);
  if (dataset.json) return print_json(to_json(*source, cost));
  print_source(*source, cost);
}

}  // namespace forebay
