#include "format/convention/key_form.hpp"

#include <algorithm>

#include "format/convention/key_words.hpp"
#include "format/dataset_files.hpp"

namespace forebay::convention {
namespace {

// Fewer hexadecimal digits may be words, or numbers.
constexpr std::size_t kLeastHash = 8;
constexpr std::string_view kDigits = "0123456789";

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

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

}  // namespace forebay::convention
