#include "format/dataset_files.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

constexpr std::size_t kMostNameBytes = 120;  // in a message

constexpr std::size_t kMostFiles = 10'000'000;

constexpr std::size_t kMostBeside = 64;

/// At separators that are not inside of braces.
std::vector<std::string> split(const std::string& text, char separator = ',') {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (c == '}') depth = std::max(0, depth - 1);
    if (c == separator && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// "000..009": the numbers, with as many digits where the first begins with a zero. Nothing where
/// `text` is no range.
std::vector<std::string> numbers_of(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {};
  const std::string first = text.substr(0, dots);
  const std::string last = text.substr(dots + 2);
  const auto is_number = [](const std::string& digits) {
    return !digits.empty() && digits.size() < 10 &&
           digits.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!is_number(first) || !is_number(last)) return {};
  const std::uint64_t end = std::stoull(last);
  const std::size_t width = first.size() > 1 && first[0] == '0' ? first.size() : 0;
  std::vector<std::string> numbers;
  for (std::uint64_t n = std::stoull(first); n <= end && numbers.size() < kMostFiles; ++n) {
    numbers.push_back(fmt::format("{:0{}}", n, width));
  }
  return numbers;
}

/// What the first pair of braces in `text` stands for, then the next, as shells have it.
std::vector<std::string> expand_braces(const std::string& text) {
  const std::size_t open = text.find('{');
  const std::size_t close = text.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {text};
  const std::string inside = text.substr(open + 1, close - open - 1);
  std::vector<std::string> words = numbers_of(inside);
  if (words.empty()) words = split(inside);
  const std::vector<std::string> ends = expand_braces(text.substr(close + 1));
  if (words.size() * ends.size() > kMostFiles) {
    throw Error(ErrorKind::usage, fmt::format("braces stand for more than {} files", kMostFiles),
                "name fewer", {.file = text});
  }
  std::vector<std::string> all;
  for (const std::string& word : words) {
    for (const std::string& end : ends) all.push_back(text.substr(0, open) + word + end);
  }
  return all;
}

struct GlobMatches : private NonCopyable {
  ~GlobMatches() { ::globfree(&found); }
  glob_t found = {};
};

void add_matches(const std::string& text, std::vector<std::string>& out) {
  if (is_foreign(text)) {
    throw Error(ErrorKind::not_found, "no such file on this storage",
                "check the path; patterns are for file systems only", {.file = text});
  }
  const std::string pattern = without_file_scheme(text);
  GlobMatches matches;
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches.found);
  if (code == GLOB_NOSPACE) throw std::bad_alloc();
  if (code != 0) {
    throw Error(ErrorKind::not_found, "no such file", "check the path, and quotes around patterns",
                {.file = pattern});
  }
  const std::size_t before = out.size();
  out.insert(out.end(), matches.found.gl_pathv, matches.found.gl_pathv + matches.found.gl_pathc);
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
}

/// The last '#' with files on its left; the whole text when there is none.
std::size_t end_of_files(const std::string& text) {
  if (storage_has(text)) return text.size();
  for (auto at = text.rfind('#'); at != std::string::npos && at > 0; at = text.rfind('#', at - 1)) {
    if (storage_has(text.substr(0, at))) return at;
  }
  return std::min(text.rfind('#'), text.size());
}

[[noreturn]] void bad_fields(const std::string& text, const std::string& what) {
  throw Error(ErrorKind::usage, what, "write FILE#x=NAME,y=NAME, or FILE#NAME", {.file = text});
}

std::vector<FieldChoice> parse_fields(const std::string& fields, const std::string& text) {
  std::vector<FieldChoice> choices;
  for (const std::string& part : split(fields)) {
    const std::size_t equals = part.find('=');
    FieldChoice choice{.name = {}, .stored = part};
    if (equals != std::string::npos) {
      choice = {.name = part.substr(0, equals), .stored = part.substr(equals + 1)};
      if (choice.name.empty()) bad_fields(text, "a field has no name before the '='");
      if (field_name(choice.name) != choice.name) {
        bad_fields(text, fmt::format("'{}' is not a field name", choice.name));
      }
    }
    if (choice.stored.empty()) bad_fields(text, "a field after the '#' is empty");
    choices.push_back(std::move(choice));
  }
  return choices;
}

bool is_name(const std::string& text) {
  return !text.empty() && field_name(text) == text && text[0] != '-' && text[0] != '.';
}

[[noreturn]] void bad_names(const std::string& text, const std::string& what) {
  throw Error(ErrorKind::usage, what, "write NAME=FILES&NAME=FILES", {.file = text});
}

std::vector<std::string> expand(const std::string& files) {
  if (storage_has(files)) return {files};
  std::vector<std::string> found;
  for (const std::string& part : split(files)) {
    for (const std::string& file : storage_has(part) ? std::vector{part} : expand_braces(part)) {
      if (storage_has(file)) {
        found.push_back(file);
      } else {
        add_matches(file, found);
      }
    }
  }
  return found;
}

}  // namespace

std::vector<NamedFiles> files_beside(const std::string& text) {
  if (text.find('&') == std::string::npos || storage_has(text)) return {};
  std::vector<NamedFiles> all;
  for (const std::string& piece : split(text, '&')) {
    const std::size_t equals = piece.find('=');
    if (equals == std::string::npos || !is_name(piece.substr(0, equals))) return {};
    all.push_back({.name = piece.substr(0, equals), .text = piece.substr(equals + 1)});
  }
  for (const NamedFiles& one : all) {
    if (one.text.empty()) bad_names(text, fmt::format("part '{}' names no file", one.name));
    if (std::ranges::count(all, one.name, &NamedFiles::name) == 1) continue;
    bad_names(text, fmt::format("two parts are called '{}'", one.name));
  }
  if (all.size() > kMostBeside) bad_names(text, fmt::format("there are {} parts", all.size()));
  return all;
}

std::vector<std::string> find_files(const std::string& text) {
  const std::vector<NamedFiles> sides = files_beside(text);
  if (sides.empty()) return expand(text.substr(0, end_of_files(text)));
  std::vector<std::string> files;
  for (const NamedFiles& side : sides) {
    const std::vector<std::string> more = find_files(side.text);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

DatasetFiles find_dataset_files(const std::string& text) {
  const std::size_t end = end_of_files(text);
  DatasetFiles result{.files = expand(text.substr(0, end)), .fields = {}};
  if (end < text.size()) result.fields = parse_fields(text.substr(end + 1), text);
  return result;
}

std::string field_name(std::string_view stored) {
  while (stored.starts_with('/')) stored.remove_prefix(1);
  std::string name(stored);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (!plain) c = c == '/' ? '.' : '_';
  }
  return name;
}

std::string python_line(const std::string& line, const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%=,";
  std::string command = fmt::format("python3 -c '{}'", line);
  for (const std::string& word : words) {
    command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

std::string beside(const std::string& path, const std::string& end) {
  return std::filesystem::path(path).replace_extension().string() + end;
}

std::string shown_name(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return c >= 0x20 && c <= 0x7e; });
  return plain && name.size() <= kMostNameBytes ? std::string(name)
                                                : printable_key(name, kMostNameBytes);
}

}  // namespace forebay
