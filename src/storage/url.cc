#include "storage/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/memory_url.hpp"
#include "storage/plugin_registry.hpp"

namespace forebay {
namespace {

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

bool on_file_system(const std::string& path) {
  std::error_code error;
  const bool found = std::filesystem::exists(path, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory && error != std::errc::filename_too_long) {
    throw Error(ErrorKind::io, fmt::format("cannot look at the path: {}", error.message()),
                "check its permissions", {.file = path});
  }
  return found;
}

bool plugin_has(const Url& url) {
  const auto plugin = plugin_for(url.scheme);
  try {
    plugin->open(url.rest);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::usage) return false;
    throw;
  }
}

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

std::string plugin_scheme(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto url = parse_url(text.substr(begin, end - begin));
    if (url && url->scheme != "file" && url->scheme != "mem") return url->scheme;
    begin = end + 1;
  }
  return {};
}

bool storage_has(const std::string& text) {
  const auto url = parse_url(text);
  if (!url) return on_file_system(text);
  if (url->scheme == "file") return on_file_system(url->rest);
  if (url->scheme == "mem") return memory_has(url->rest);
  return plugin_has(*url);
}

}  // namespace forebay
