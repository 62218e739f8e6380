#include "measure/comparison.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "forebay/error.hpp"
#include "program/output.hpp"
#include "read/strategy_table.hpp"
#include "storage/atomic_file.hpp"

namespace forebay::bench {

using Json = nlohmann::ordered_json;

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Variant parse_variant(const std::string& text, const LoaderOptions& base) {
  const std::vector<std::string> parts = split(text, '+');
  Variant variant{text, base};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals != std::string::npos) {
      variant.options.set(parts[i].substr(0, equals), parts[i].substr(equals + 1));
    } else if (i == 0) {
      variant.options.set("strategy", parts[i]);
    } else {
      throw Error(ErrorKind::usage, fmt::format("'{}' in '{}' has no value", parts[i], text),
                  "write STRATEGY+OPTION=VALUE, such as lmm+roots=2");
    }
  }
  return variant;
}

/// The baseline first, `auto` last.
std::vector<std::string> all_strategies() {
  std::vector<std::string> names = strategy_names();
  std::rotate(names.begin(), names.begin() + 1, names.end());
  return names;
}

}  // namespace

std::vector<Variant> parse_variants(const std::vector<std::string>& words,
                                    const LoaderOptions& base) {
  std::vector<std::string> texts;
  for (const std::string& word : words) {
    for (std::string& text : split(word, ',')) texts.push_back(std::move(text));
  }
  if (texts.empty()) texts = all_strategies();
  std::vector<Variant> variants;
  for (const std::string& text : texts) {
    if (std::ranges::find(variants, text, &Variant::name) != variants.end()) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is named twice", text), "name it once");
    }
    variants.push_back(parse_variant(text, base));
  }
  return variants;
}

Json spreads_of(const std::vector<Json>& runs) {
  std::vector<std::pair<std::string, std::vector<double>>> figures;
  for (const Json& run : runs) {
    for (const auto& [name, value] : run.items()) {
      auto found = std::ranges::find(figures, name, &decltype(figures)::value_type::first);
      if (found == figures.end()) found = figures.insert(found, {name, {}});
      found->second.push_back(value.get<double>());
    }
  }
  Json spreads = Json::object();
  for (auto& [name, values] : figures) spreads[name] = spread_to_json(std::move(values));
  return spreads;
}

Json spread_to_json(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {{"median", median}, {"least", values.front()}, {"most", values.back()}};
}

std::string spread_to_text(const Json& row, const char* name, int decimals) {
  if (!row.contains(name)) return "-";
  const auto& spread = row[name];
  return fmt::format("{0:.{3}f} ({1:.{3}f}-{2:.{3}f})", spread["median"].get<double>(),
                     spread["least"].get<double>(), spread["most"].get<double>(), decimals);
}

double median_of(const Json& row, const char* name) {
  return row.contains(name) ? row[name]["median"].get<double>() : 0;
}

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    text += fmt::format("{:<{}}", row.front(), widths.front());
    for (std::size_t i = 1; i < row.size(); ++i) text += fmt::format("  {:>{}}", row[i], widths[i]);
    text += '\n';
  }
  return text;
}

void write_results(const Json& json, const std::string& text, const std::string& json_path) {
  if (json_path == "-") return print_json(json);
  if (!json_path.empty()) {
    const std::string line =
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    AtomicFile file(json_path);
    file.write(std::as_bytes(std::span(line)));
    file.commit();
  }
  fmt::print("{}", text);
}

}  // namespace forebay::bench
