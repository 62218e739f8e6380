// "scheme://rest": which storage a path is on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace forebay {

struct Url {
  std::string scheme;
  std::string rest;  ///< behind "://", as it stands
};

/// The longest word that counts as a scheme.
inline constexpr std::size_t kLongestScheme = 31;

/// A small letter, then small letters, digits, '+', '-', '.'.
bool is_scheme(std::string_view text);

/// Nothing when `text` is a plain path.
std::optional<Url> parse_url(std::string_view text);

/// `text` without "file://". Other URLs stay as they are.
std::string without_file_scheme(const std::string& text);

/// Whether `text` names no file of the operating system: a URL of another scheme than "file".
bool is_foreign(std::string_view text);

}  // namespace forebay
