#include "format/convention/key_words.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"

namespace forebay::convention {
namespace {

constexpr std::array<std::string_view, 22> kCounterKeys = {
    "count",       "data_size",    "len",        "length",      "n",           "nSamples",
    "n_examples",  "n_samples",    "num",        "num-samples", "numSamples",  "num_data",
    "num_entries", "num_examples", "num_images", "num_items",   "num_records", "num_rows",
    "num_samples", "samples",      "size",       "total"};
static_assert(std::ranges::is_sorted(kCounterKeys));

bool is_separator(char c) { return c == '-' || c == '_' || c == '/' || c == '.' || c == ':'; }

bool is_words(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `bytes` as an integer, the low byte first or last.
std::uint64_t integer(std::string_view bytes, bool low_first) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte =
        static_cast<unsigned char>(low_first ? bytes[bytes.size() - 1 - i] : bytes[i]);
    number = number << 8 | byte;
  }
  return number;
}

/// The argument of one opcode of pickle that pushes an integer which is not negative, and of STOP.
std::optional<std::uint64_t> pickled(std::string_view text) {
  if (text.size() < 2 || text.back() != '.') return std::nullopt;
  text.remove_suffix(1);
  if (text.size() > 2 && text[0] == '\x80') {
    text.remove_prefix(2);
    constexpr std::size_t kFrame = 9;  // an opcode and the length of what follows
    if (text.size() > kFrame && text[0] == '\x95') text.remove_prefix(kFrame);
  }
  if (!text.empty() && text.back() == '\x94') text.remove_suffix(1);  // "remember this"
  if (text.size() < 2) return std::nullopt;
  const char opcode = text[0];
  const std::string_view rest = text.substr(1);
  if (opcode == 'K' && rest.size() == 1) return integer(rest, true);
  if (opcode == 'M' && rest.size() == 2) return integer(rest, true);
  if (opcode == 'J' && rest.size() == 4 && rest[3] >= 0) return integer(rest, true);
  const bool is_long = opcode == '\x8a' && rest.size() <= 9;
  if (is_long && rest.size() == 1U + static_cast<unsigned char>(rest[0]) && rest.back() >= 0) {
    return integer(rest.substr(1), true);
  }
  if ((opcode == 'I' || opcode == 'L') && rest.back() == '\n') {
    std::string_view number = rest.substr(0, rest.size() - 1);
    if (number.ends_with('L')) number.remove_suffix(1);
    return decimal(number);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> msgpack(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto type = static_cast<unsigned char>(text[0]);
  const std::string_view rest = text.substr(1);
  if (rest.empty() && type < 0x80) return type;
  const bool is_unsigned = type >= 0xcc && type <= 0xcf;
  const bool is_signed = type >= 0xd0 && type <= 0xd3;
  if (!is_unsigned && !is_signed) return std::nullopt;
  if (rest.size() != std::size_t{1} << (type & 3U)) return std::nullopt;
  if (is_signed && rest[0] < 0) return std::nullopt;
  return integer(rest, false);
}

}  // namespace

std::span<const std::string_view> counter_keys() { return kCounterKeys; }

bool is_counter_key(std::string_view key) {
  if (is_reserved_key(key)) key = key.substr(2, key.size() - 4);
  return std::ranges::binary_search(kCounterKeys, key);
}

bool is_reserved_key(std::string_view key) {
  return key.size() > 4 && key.starts_with("__") && key.ends_with("__");
}

std::vector<std::uint64_t> possible_counts(std::span<const std::byte> value) {
  std::string_view text = chars_of(value);
  std::vector<std::uint64_t> counts;
  const auto add = [&counts](std::optional<std::uint64_t> count) {
    if (count && std::ranges::find(counts, *count) == counts.end()) counts.push_back(*count);
  };
  add(pickled(text));
  add(msgpack(text));
  std::string_view digits = text;
  while (!digits.empty() && (digits.back() == '\n' || digits.back() == '\0')) {
    digits.remove_suffix(1);
  }
  if (const auto number = decimal(digits)) {
    std::erase(counts, *number);
    counts.insert(counts.begin(), *number);
  } else if ((text.size() == 4 || text.size() == 8) && !is_words(text)) {
    const std::uint64_t low_first = integer(text, true);
    const std::uint64_t high_first = integer(text, false);
    add(std::min(low_first, high_first));
    add(std::max(low_first, high_first));
  }
  return counts;
}

std::optional<NumberedKey> numbered_key(std::string_view key) {
  std::size_t begin = key.size();
  while (begin > 0 && is_digit(key[begin - 1])) --begin;
  const std::string_view digits = key.substr(begin);
  const auto number = decimal(digits);
  if (!number) return std::nullopt;
  return NumberedKey{.prefix = key.substr(0, begin), .digits = digits, .number = *number};
}

std::string part_name(std::string_view prefix) {
  while (!prefix.empty() && is_separator(prefix.back())) prefix.remove_suffix(1);
  return field_name(prefix);
}

KeyPatterns::KeyPatterns(std::string_view text) {
  std::string one;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escaped = text.substr(at).starts_with("\\,");
    if (escaped) ++at;
    if (escaped || text[at] != ',') {
      one += text[at];
      if (at + 1 < text.size()) continue;
    }
    if (!one.empty()) patterns_.push_back(std::exchange(one, {}));
  }
}

bool KeyPatterns::is_pattern(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos || text.starts_with("0x");
}

bool KeyPatterns::matches(std::size_t i, std::string_view key) const {
  constexpr std::size_t kMostKeyBytes = 2048;  // in hexadecimal; LMDB's keys have 511
  const std::string& pattern = patterns_[i];
  if (pattern == key) return true;
  if (!is_pattern(pattern)) return false;
  const std::string shown = printable_key(key, kMostKeyBytes);
  if (pattern == shown || ::fnmatch(pattern.c_str(), shown.c_str(), 0) == 0) return true;
  const bool is_text = key.find('\0') == std::string_view::npos;
  return is_text && ::fnmatch(pattern.c_str(), std::string(key).c_str(), 0) == 0;
}

bool KeyPatterns::match(std::string_view key) const {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (matches(i, key)) return true;
  }
  return false;
}

std::string shown_key(std::string_view key) { return printable_key(key); }

}  // namespace forebay::convention
