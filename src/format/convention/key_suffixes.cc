// Names at the ends of keys, which may be those of parts: "000017_image" and "000017_label". Parts
// are put together by prefixes only (groups.cc), so these are told.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "format/convention/key_look.hpp"
#include "format/convention/layout.hpp"

namespace forebay::convention {
namespace {

constexpr std::size_t kMostSuffixes = 16;  // of parts of a sample

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || is_digit(c); });
}

/// The name that `key` ends in, with the separator before it: "_image". Empty where it ends in
/// none, as "17" does.
std::string_view suffix_of(std::string_view key) {
  const std::size_t at = key.find_last_of("-_/.:");
  if (at == std::string_view::npos || at == 0 || !is_name(key.substr(at + 1))) return {};
  return key.substr(at);
}

std::string_view stem_of(std::string_view key) {
  return key.substr(0, key.size() - suffix_of(key).size());
}

std::set<std::string> suffixes_of(std::span<const std::string> keys) {
  std::set<std::string> all;
  for (const std::string& key : keys) all.emplace(suffix_of(key));
  return all;
}

bool may_be_parts(const std::set<std::string>& suffixes) {
  return suffixes.size() >= 2 && suffixes.size() <= kMostSuffixes &&
         std::ranges::all_of(suffixes, [](const std::string& suffix) {
           return suffix.empty() || may_name_part(suffix);
         });
}

}  // namespace

/// Every key that was looked at, and with it all that begin like it, have to end in the same names.
bool Look::have_all(std::span<const std::string> keys, const std::set<std::string>& suffixes) {
  return std::ranges::all_of(keys, [&](const std::string& key) {
    if (is_metadata(key)) return true;
    return std::ranges::all_of(suffixes, [&](const std::string& suffix) {
      return find(std::string(stem_of(key)) + suffix).has_value();
    });
  });
}

void Look::tell_suffixes() {
  // The last of all that begin alike ends in a name.
  if (suffix_of(look_.last_key).empty() && !is_metadata(look_.last_key)) return;
  std::vector<std::string> keys = end_keys(false);
  const auto back = end_keys(true);
  keys.insert(keys.end(), back.begin(), back.end());
  const std::set<std::string> suffixes = suffixes_of(keys);
  const bool even = left() > suffixes.size() && left() % suffixes.size() == 0;
  if (!even || !may_be_parts(suffixes)) return;
  for (const MetadataRecord& record : look_.metadata) {
    if (contains(record.counts, left())) return;
  }
  if (!have_all(keys, suffixes) || !have_all(keys_between(), suffixes)) return;
  std::vector<std::string> names, others;
  for (const std::string& suffix : suffixes) {
    names.push_back(shown_key(std::string(stem_of(keys[0])) + suffix));
    if (names.size() > 1) others.push_back("*" + suffix);
  }
  look_.guess = fmt::format(
      "keys that begin alike end in the same {} names ({}), and each is taken for a sample of its "
      "own: names of parts are known in front of keys (image-17, label-17); --leave-out '{}' reads "
      "the first alone, --convention plain says that they are no parts",
      names.size(), fmt::join(names, ", "), fmt::join(others, ","));
}

}  // namespace forebay::convention
