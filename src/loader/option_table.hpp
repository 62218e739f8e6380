// The text form of options: a table of them.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "core/names.hpp"
#include "forebay/options.hpp"

namespace forebay {

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

/// Those that tell what the files are.
std::span<const OptionEntry> format_entries();

/// Those that choose and shape an order.
std::span<const OptionEntry> order_entries();

}  // namespace forebay
