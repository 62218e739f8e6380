// An option whose values have names. CLI11's own transformer shows what stands behind them, in the
// help and in errors: for small enums, control characters.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace forebay {

/// For CLI::Option::transform(): a name of `names` becomes its number, anything else an error that
/// lists the names.
template <typename Enum>
CLI::Validator named_choice(const std::map<std::string, Enum>& names) {
  const auto look_up = [names](std::string& text) -> std::string {
    if (const auto found = names.find(text); found != names.end()) {
      text = std::to_string(static_cast<int>(found->second));
      return {};
    }
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name.first;
    return fmt::format("'{}' is none of: {}", text, known);
  };
  return {look_up, "", "named choice"};
}

}  // namespace forebay
