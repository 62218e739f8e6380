#include "format/convention/key_words.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>

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

// Fewer hexadecimal digits may be words, or numbers.
constexpr std::size_t kLeastHash = 8;
constexpr std::string_view kDigits = "0123456789";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '-' || c == '_' || c == '/' || c == '.' || c == ':'; }

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

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

namespace {

/// Hexadecimal digits as 'x', '-' as it is; empty when it has something else, or too few digits.
/// Short ones are taken for hashes only where digits and letters are mixed.
std::string hash_pattern(std::string_view key) {
  std::string pattern;
  for (const char c : key) {
    if (!is_hex(c) && c != '-') return {};
    pattern += c == '-' ? c : 'x';
  }
  const auto digits = static_cast<std::size_t>(std::ranges::count_if(key, is_digit));
  const auto hex = static_cast<std::size_t>(std::ranges::count(pattern, 'x'));
  constexpr std::size_t kSurelyHash = 16;
  const bool mixed = digits > 0 || hex >= kSurelyHash;
  return hex >= kLeastHash && digits < hex && mixed ? pattern : std::string();
}

/// `key` with '0' for each number in it; empty when it has none.
std::string number_pattern(std::string_view key) {
  if (key.size() > 1 && key[0] == '-' && is_digit(key[1])) key.remove_prefix(1);
  std::string pattern;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (!is_digit(key[i])) {
      pattern += key[i];
    } else if (i == 0 || !is_digit(key[i - 1])) {
      pattern += '0';
    }
  }
  if (pattern.starts_with("0_")) return "0_";
  return pattern.find('0') == std::string::npos ? std::string() : pattern;
}

bool is_name_and_number(std::string_view key) {
  const std::size_t digit = key.find_first_of(kDigits);
  return digit != std::string_view::npos && digit > 0 &&
         key.find_first_not_of(kDigits, digit) == std::string_view::npos;
}

/// Of files: "a/b", "b.jpg".
bool is_path(std::string_view key) {
  const std::size_t slash = key.find('/', 1);
  if (slash < key.size() - 1) return true;
  constexpr std::size_t kMostExtension = 5;
  const std::size_t dot = key.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const std::string_view extension = key.substr(dot + 1);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) { return is_letter(c) || is_digit(c); };
  return !extension.empty() && extension.size() <= kMostExtension &&
         std::ranges::all_of(extension, is_plain) && std::ranges::any_of(extension, is_letter);
}

}  // namespace

std::vector<KeyForm> KeyForm::all_of(std::string_view key) {
  std::vector<KeyForm> forms;
  if (key.empty()) return forms;
  if (key.size() == 4 || key.size() == 8) {
    std::string pattern(key.size(), 'x');
    if (key.front() == '\0') forms.push_back({Kind::integer, '\0' + pattern.substr(1)});
    if (key.back() == '\0') forms.push_back({Kind::integer, pattern.substr(1) + '\0'});
  }
  if (std::string hash = hash_pattern(key); !hash.empty()) forms.push_back({Kind::hash, hash});
  std::string numbers = number_pattern(key);
  if (!numbers.empty()) forms.push_back({Kind::number, std::move(numbers)});
  if (is_path(key)) forms.push_back({Kind::path, {}});
  if (is_name_and_number(key)) forms.push_back({Kind::named, {}});
  return forms;
}

bool KeyForm::has(std::string_view key) const {
  switch (kind_) {
    case Kind::integer:
    case Kind::hash:
      return std::ranges::equal(key, pattern_, [this](char c, char wanted) {
        return wanted == 'x' ? kind_ == Kind::integer || is_hex(c) : c == wanted;
      });
    case Kind::number:
      return number_pattern(key) == pattern_;
    case Kind::path:
      return !key.empty() && is_path(key);
    case Kind::named:
      break;
  }
  return is_name_and_number(key);
}

bool KeyForm::has_sibling(std::string_view key) const {
  if (is_plain_number()) return false;
  const std::size_t end = pattern_.find_last_of('0') + 1;
  const bool has_end = kind_ == Kind::number && end < pattern_.size() && pattern_ != "0_";
  if (has_end && key.ends_with(std::string_view(pattern_).substr(end))) return true;
  return std::ranges::any_of(all_of(key), &KeyForm::is_narrow);
}

std::vector<std::string> KeyForm::places() const {
  std::vector<std::string> places;
  if (kind_ == Kind::integer && pattern_[0] == '\0') {
    for (const char c : {'\0', '\1', '\2', '\4', '\x10', '\x40'}) {
      for (std::size_t at = 1; at < pattern_.size(); ++at) {
        places.push_back(std::string(pattern_.size(), '\0'));
        places.back()[at] = c;
      }
    }
    std::ranges::sort(places);
  } else if (kind_ == Kind::hash) {
    for (const char digit : std::string_view("0123456789abcdef")) places.emplace_back(1, digit);
  } else if (kind_ == Kind::number) {
    const std::string head = pattern_.substr(0, pattern_.find('0'));
    if (head.empty()) places.emplace_back("-");
    for (const char digit : kDigits) places.push_back(head + digit);
  }
  return places;
}

std::string KeyForm::text() const {
  const auto shown = [](std::string_view text) { return "'" + shown_name(text) + "'"; };
  switch (kind_) {
    case Kind::integer:
      return "integers of " + std::to_string(pattern_.size()) + " bytes";
    case Kind::hash:
      if (pattern_ == "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") return "UUIDs";
      return "hashes of " + std::to_string(std::ranges::count(pattern_, 'x')) + " digits";
    case Kind::path:
      return "names of files";
    case Kind::named:
      return "names with a number";
    case Kind::number:
      break;
  }
  if (is_plain_number()) return "numbers";
  if (pattern_ == "0_") return "a number, '_' and a name";
  if (std::ranges::count(pattern_, '0') > 1) {
    std::string marked = pattern_;
    std::ranges::replace(marked, '0', '#');
    return shown(marked) + " with a number for each '#'";
  }
  const std::size_t at = pattern_.find('0');
  std::string text = at == 0 ? "a number" : shown(pattern_.substr(0, at)) + " and a number";
  if (at + 1 < pattern_.size()) text += " and " + shown(pattern_.substr(at + 1));
  return text;
}

KeyPatterns::KeyPatterns(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) patterns_.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
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
