// Tables of words and what they mean, for options in text form.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "forebay/error.hpp"

namespace forebay {

/// A word, and what it means.
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

}  // namespace forebay
