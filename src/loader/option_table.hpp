// The text form of options: a table of them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/names.hpp"
#include "core/number_text.hpp"
#include "forebay/options.hpp"

namespace forebay {

/// One option of the text form: what it is called, and how it is read and written.
struct OptionEntry {
  OptionInfo info;
  std::function<void(LoaderOptions&, std::string_view)> set;
  std::function<std::string(const LoaderOptions&)> get;
};

template <typename Part, typename Number>
OptionEntry entry(OptionInfo info, Number Part::*field, std::uint64_t least = 0,
                  std::uint64_t most = UINT64_MAX) {
  return {info,
          [=](LoaderOptions& options, std::string_view text) {
            options.*field = static_cast<Number>(parse_count(text, info.name, least, most));
          },
          [=](const LoaderOptions& options) { return std::to_string(options.*field); }};
}

template <typename Part>
OptionEntry size_entry(OptionInfo info, std::uint64_t Part::*field) {
  return {info,
          [=](LoaderOptions& options, std::string_view text) {
            options.*field = parse_bytes(text, info.name);
          },
          [=](const LoaderOptions& options) { return exact_bytes(options.*field); }};
}

/// `read` checks the text.
template <typename Part>
OptionEntry entry(
    OptionInfo info, std::string Part::*field,
    std::string (*read)(std::string_view) = [](std::string_view text) {
      return std::string(text);
    }) {
  return {info, [=](LoaderOptions& options, std::string_view text) { options.*field = read(text); },
          [=](const LoaderOptions& options) { return options.*field; }};
}

/// `names` outlives the entry.
template <typename Part, typename Value, std::size_t N>
OptionEntry entry(OptionInfo info, Value Part::*field, const Name<Value> (&names)[N]) {
  return {info,
          [=, &names](LoaderOptions& options, std::string_view text) {
            options.*field = parse_name(info.name, text, names);
          },
          [=, &names](const LoaderOptions& options) {
            return std::string(name_of(options.*field, names));
          }};
}

inline constexpr Name<bool> kSwitch[] = {{"off", false}, {"on", true}};

std::vector<OptionInfo> infos_of(std::span<const OptionEntry> entries);

/// Those that tell what the files are.
std::span<const OptionEntry> format_entries();

/// Those that choose and shape an order.
std::span<const OptionEntry> order_entries();

}  // namespace forebay
