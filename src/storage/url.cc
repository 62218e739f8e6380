#include "storage/url.hpp"

#include <algorithm>

namespace forebay {
namespace {

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

bool is_scheme(std::string_view text) {
  return !text.empty() && text.size() <= kLongestScheme && is_small_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) {
           return is_small_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
         });
}

std::optional<Url> parse_url(std::string_view text) {
  const std::size_t at = text.find("://");
  if (at == std::string_view::npos || !is_scheme(text.substr(0, at))) return std::nullopt;
  return Url{.scheme = std::string(text.substr(0, at)), .rest = std::string(text.substr(at + 3))};
}

std::string without_file_scheme(const std::string& text) {
  const auto url = parse_url(text);
  return url && url->scheme == "file" ? url->rest : text;
}

bool is_foreign(std::string_view text) {
  const auto url = parse_url(text);
  return url && url->scheme != "file";
}

}  // namespace forebay
