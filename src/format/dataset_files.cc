#include "format/dataset_files.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "storage/file_error.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

constexpr std::size_t kMostNameBytes = 120;  // in a message

constexpr std::size_t kMostFiles = 10'000'000;

constexpr std::size_t kMostBeside = 64;

bool is_name(std::string_view text) {
  return !text.empty() && field_name(text) == text && text[0] != '-' && text[0] != '.';
}

// What means something in the text of a data set, unless a backslash stands before it.
constexpr std::string_view kMarks = "\\*?[]{},#&=";

bool is_escape(std::string_view text, std::size_t at) {
  return text[at] == '\\' && at + 1 < text.size() && kMarks.find(text[at + 1]) != std::string::npos;
}

/// How much of `text` from `from` on is the name of a folder that exists, with its slash: marks in
/// it are what they are.
std::size_t folder_length(const std::string& text, std::size_t from) {
  std::size_t end = from;
  if (is_foreign(std::string_view(text).substr(from))) return 0;
  for (;;) {
    const std::size_t slash = text.find('/', end);
    if (slash == std::string::npos) break;
    const std::string folder = without_file_scheme(text.substr(from, slash + 1 - from));
    std::error_code unknown;
    const bool begins = folder.empty() || folder == "file:/" || folder == "file://";
    if (!begins && !std::filesystem::is_directory(folder, unknown)) break;
    end = slash + 1;
  }
  return end - from;
}

/// Where `piece` has its files: behind "NAME=" of those beside each other.
std::size_t files_in(std::string_view piece) {
  const std::size_t equals = piece.find('=');
  return equals != std::string_view::npos && is_name(piece.substr(0, equals)) ? equals + 1 : 0;
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

/// The first `mark` from `from` on that no backslash stands before.
std::size_t find_mark(const std::string& text, char mark, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == mark) return at;
    if (is_escape(text, at)) ++at;
  }
  return std::string::npos;
}

/// At separators outside of braces that no backslash stands before. `skip` says how much of a piece
/// that begins somewhere has none.
std::vector<std::string> split(const std::string& text, char separator,
                               const std::function<std::size_t(std::size_t begin)>& skip = {}) {
  std::vector<std::string> pieces;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = skip ? skip(0) : 0; at < text.size(); ++at) {
    if (is_escape(text, at)) {
      ++at;
    } else if (text[at] == '{') {
      ++depth;
    } else if (text[at] == '}') {
      depth = std::max(0, depth - 1);
    } else if (text[at] == separator && depth == 0) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at + 1;
      at += skip ? skip(begin) : 0;
    }
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

/// Joins piece `i`, of which the first `plain` characters name no file, with those behind it, where
/// only all of them together are the name of a file.
void join_name(std::vector<std::string>& pieces, std::size_t i, char separator, std::size_t plain) {
  constexpr std::size_t kMostJoined = 8;
  std::string name = pieces[i].substr(plain);
  if (is_foreign(name) || storage_has(name)) return;
  const std::size_t most = std::min(kMostJoined, pieces.size() - i - 1);
  for (std::size_t more = 1; more <= most; ++more) {
    name += separator + pieces[i + more];
    if (!storage_has(name)) continue;
    pieces[i] = pieces[i].substr(0, plain) + name;
    const auto next = pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    pieces.erase(next, next + static_cast<std::ptrdiff_t>(more));
    return;
  }
}

/// What the first pair of braces in `text` stands for, then the next, as shells have it; those in
/// the first `plain` characters are what they are.
std::vector<std::string> expand_braces(const std::string& text, std::size_t plain = 0) {
  const std::size_t open = find_mark(text, '{', plain);
  const std::size_t close = find_mark(text, '}', std::min(open, text.size()));
  if (open == std::string::npos || close == std::string::npos) return {text};
  const std::string inside = text.substr(open + 1, close - open - 1);
  std::vector<std::string> words = numbers_of(inside);
  if (words.empty()) words = split(inside, ',');
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

/// Its matches by glob(3), where a folder that exists is no pattern.
std::string as_pattern(const std::string& text) {
  const std::size_t plain = folder_length(text, 0);
  std::string pattern;
  for (const char c : text.substr(0, plain)) {
    if (kMarks.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + text.substr(plain);
}

/// A folder of a pattern that could not be read: glob(3) would leave out what is in it.
struct UnreadFolder {
  std::string path;
  int error = 0;
};
thread_local UnreadFolder unread_folder;  // as its callback has no argument for us

int note_unread(const char* path, int error) {
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) return 0;  // which match nothing
  unread_folder = {.path = path, .error = error};
  return 1;
}

struct GlobMatches : private NonCopyable {
  ~GlobMatches() { ::globfree(&found); }
  glob_t found = {};
};

void add_matches(const std::string& text, std::vector<std::string>& out) {
  if (const std::string name = without_escapes(text); name != text && storage_has(name)) {
    return out.push_back(name);
  }
  if (is_foreign(text)) {
    throw Error(ErrorKind::not_found, "no such file on this storage",
                "check the path; patterns are for file systems only", {.file = text});
  }
  const std::string pattern = as_pattern(without_file_scheme(text));
  GlobMatches matches;
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, note_unread, &matches.found);
  if (code == GLOB_NOSPACE) throw std::bad_alloc();
  if (code == GLOB_ABORTED) throw open_error(unread_folder.path, unread_folder.error);
  if (code != 0) {
    throw Error(ErrorKind::not_found, "no such file", "check the path, and quotes around patterns",
                {.file = without_file_scheme(text)});
  }
  std::vector<std::string> found(matches.found.gl_pathv,
                                 matches.found.gl_pathv + matches.found.gl_pathc);
  std::ranges::sort(found);
  const std::string first = found.front();
  std::erase_if(found, is_unfinished);
  if (found.empty()) refuse_unfinished(first);
  out.insert(out.end(), found.begin(), found.end());
}

/// Where each '#' of `text` stands that is not in the name of a file or folder that exists.
std::vector<std::size_t> find_hashes(const std::string& text) {
  std::vector<std::size_t> places;
  if (text.find('#') == std::string::npos) return places;
  const std::vector<std::string> pieces = split_names(text, ',');
  std::size_t begin = 0;
  for (const std::string& piece : pieces) {
    auto at = find_mark(piece, '#', folder_length(piece, 0));
    // What all of `text` is has been asked before.
    if (at != std::string::npos && pieces.size() > 1 && storage_has(piece)) at = std::string::npos;
    for (; at != std::string::npos; at = find_mark(piece, '#', at + 1)) {
      places.push_back(begin + at);
    }
    begin += piece.size() + 1;
  }
  return places;
}

/// The last '#' with files on its left; the whole text when there is none.
std::size_t end_of_files(const std::string& text) {
  if (storage_has(text)) return text.size();
  const std::vector<std::size_t> hashes = find_hashes(text);
  const auto last = std::find_if(hashes.rbegin(), hashes.rend(), [&](std::size_t at) {
    return at > 0 && storage_has(text.substr(0, at));
  });
  if (last != hashes.rend()) return *last;
  return hashes.empty() ? text.size() : hashes.back();
}

[[noreturn]] void bad_fields(const std::string& text, const std::string& what) {
  throw Error(ErrorKind::usage, what, "write FILE#x=NAME,y=NAME, or FILE#NAME", {.file = text});
}

[[noreturn]] void bad_names(const std::string& text, const std::string& what) {
  throw Error(ErrorKind::usage, what, "write NAME=FILES&NAME=FILES", {.file = text});
}

/// Whether `text` is UTF-8 of characters that a terminal shows.
bool is_shown_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || text.size() <= more) return false;
    std::uint32_t code = more == 0 ? lead : lead & (0x3fU >> more);
    for (std::size_t i = 1; i <= more; ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if ((next & 0xc0U) != 0x80) return false;
      code = code << 6U | (next & 0x3fU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    if (control || surrogate || code < kLeast[more] || code > 0x10ffff) return false;
    text.remove_prefix(more + 1);
  }
  return true;
}

std::vector<std::string> expand(const std::string& files) {
  if (storage_has(files)) return {files};
  std::vector<std::string> found;
  for (const std::string& part : split_names(files, ',')) {
    const bool there = storage_has(part);
    for (const std::string& file :
         there ? std::vector{part} : expand_braces(part, folder_length(part, 0))) {
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

std::vector<std::string> split_names(const std::string& text, char separator) {
  const auto files = [&](std::size_t begin) {
    return separator == '&' ? files_in(std::string_view(text).substr(begin)) : 0;
  };
  const auto skip = [&](std::size_t begin) {
    return files(begin) + folder_length(text, begin + files(begin));
  };
  std::vector<std::string> pieces = split(text, separator, skip);
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    join_name(pieces, i, separator, separator == '&' ? files_in(pieces[i]) : 0);
  }
  return pieces;
}

std::string without_escapes(std::string_view text) {
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) name += text[is_escape(text, at) ? ++at : at];
  return name;
}

std::vector<NamedFiles> files_beside(const std::string& text) {
  if (text.find('&') == std::string::npos || storage_has(text)) return {};
  std::vector<NamedFiles> all;
  for (const std::string& piece : split_names(text, '&')) {
    const std::size_t files = files_in(piece);
    if (files == 0) return {};
    all.push_back({.name = piece.substr(0, files - 1), .text = piece.substr(files)});
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

std::vector<FieldChoice> parse_fields(const std::string& fields, const std::string& text) {
  std::vector<FieldChoice> choices;
  for (const std::string& part : split(fields, ',')) {
    const std::size_t equals = find_mark(part, '=', 0);
    FieldChoice choice{.name = {}, .stored = without_escapes(part)};
    if (equals != std::string::npos) {
      choice = {.name = part.substr(0, equals),
                .stored = without_escapes(std::string_view(part).substr(equals + 1))};
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

bool is_unfinished(const std::string& path) {
  std::string_view name = path;
  while (name.ends_with('/')) name.remove_suffix(1);
  std::error_code unknown;
  return name.ends_with(".partial") &&
         std::filesystem::exists(std::filesystem::path(name) / kPackPlan, unknown);
}

void refuse_unfinished(const std::string& path) {
  if (!is_unfinished(path)) return;
  throw Error(
      ErrorKind::usage, "'forebay pack' was interrupted here: not all of its records are there",
      "complete it: the command that began it, and --resume; or with --force, from the begin",
      {.file = path});
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
  return is_shown_utf8(name) && name.size() <= kMostNameBytes ? std::string(name)
                                                              : printable_key(name, kMostNameBytes);
}

}  // namespace forebay
