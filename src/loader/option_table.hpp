// The text form of options: tables of names for values, and of options.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "forebay/error.hpp"
#include "forebay/options.hpp"

namespace forebay {

/// A word of the text form, and what it means.
template <typename Value>
struct Name {
  std::string_view text;
  Value value;
};

/// Throws usage naming what is allowed.
template <typename Value, std::size_t N>
Value parse_name(std::string_view option, std::string_view text, const Name<Value> (&names)[N]) {
  std::string allowed;
  for (const auto& name : names) {
    if (name.text == text) return name.value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(name.text);
  }
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option {}", text, option),
              "choose one of: " + allowed);
}

template <typename Value, std::size_t N>
std::string_view name_of(Value value, const Name<Value> (&names)[N]) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return "?";
}

/// One option of the text form: what it is called, and how it is read and written.
struct OptionEntry {
  OptionInfo info;
  void (*set)(LoaderOptions&, std::string_view);
  std::string (*get)(const LoaderOptions&);
};

template <std::size_t N>
std::array<OptionInfo, N> infos_of(const std::array<OptionEntry, N>& entries) {
  std::array<OptionInfo, N> infos;
  std::ranges::transform(entries, infos.begin(), &OptionEntry::info);
  return infos;
}

/// Those that choose and shape an order.
std::span<const OptionEntry> order_entries();

}  // namespace forebay
