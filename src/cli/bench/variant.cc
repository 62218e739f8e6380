#include "cli/bench/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "forebay/error.hpp"

namespace forebay::bench {
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
  std::vector<std::string> names;
  for (int i = 0;; ++i) {
    const std::string name(to_string(static_cast<Strategy>(i)));
    if (name == "?") break;
    names.push_back(name);
  }
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

}  // namespace forebay::bench
