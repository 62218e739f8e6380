#include "format/class_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "forebay/error.hpp"
#include "format/convention/layout.hpp"
#include "format/dataset_files.hpp"
#include "format/registry.hpp"
#include "format/repeated_names.hpp"
#include "format/user_cache.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

constexpr std::string_view kEnd = ".classes";
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr const char* kOneALine =
    "write the name of one class a line, the first is that of number 0";

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::pair<char, char> kEscapes[] = {{'\n', 'n'}, {'\r', 'r'}, {'\\', '\\'}};

std::string unescaped(std::string_view line) {
  std::string name;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto* const found =
        line[i] == '\\' && i + 1 < line.size()
            ? std::ranges::find(kEscapes, line[i + 1], &std::pair<char, char>::second)
            : std::end(kEscapes);
    name += found == std::end(kEscapes) ? line[i] : found->first;
    if (found != std::end(kEscapes)) ++i;
  }
  return name;
}

ClassNames read_names(const std::string& path) {
  const std::vector<std::byte> bytes = read_small_file(path, kMostBytes, kOneALine);
  return parse_class_names({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

/// Whether `text` is a file that no format recognises.
bool is_list(const std::string& text) {
  if (is_foreign(text) || !std::filesystem::is_regular_file(without_file_scheme(text)))
    return false;
  if (text.ends_with(kEnd) || text.ends_with(".txt")) return true;
  try {
    static_cast<void>(recognise_files(text));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    return true;
  }
  return false;
}

}  // namespace

std::string class_names_path(const std::string& data_file) { return data_file + std::string(kEnd); }

ClassNames class_names_beside(const std::string& data_file) {
  const std::string path = class_names_path(data_file);
  return storage_has(path) ? read_names(path) : ClassNames();
}

std::string no_samples_note(const std::string& name) {
  return fmt::format("class '{}' has a number and no samples", shown_name(name));
}

std::string doubtful_classes_note(std::span<const std::string> names) {
  if (names.empty()) return {};
  const std::string taken =
      fmt::format("'{}' {}: if ", fmt::join(names, "', '"),
                  names.size() == 1 ? "is taken for a class" : "are taken for classes");
  if (std::ranges::all_of(names, is_split_name)) {
    return taken + "splits are meant, give the folder of one of them";
  }
  if (names.size() < 2 || !std::ranges::all_of(names, convention::is_usual_part)) return {};
  return taken + fmt::format(
                     "they are parts of samples, put them into a tar archive as "
                     "NAME.{}.png, NAME.{}.png",
                     names[0], names[1]);
}

std::string class_names_text(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    for (const char c : name) {
      const auto* const found = std::ranges::find(kEscapes, c, &std::pair<char, char>::first);
      if (found != std::end(kEscapes)) text += '\\';
      text += found == std::end(kEscapes) ? c : found->second;
    }
    text += '\n';
  }
  // One in front is not taken for a part of the first name.
  return text.starts_with(kByteOrderMark) ? std::string(kByteOrderMark) + text : text;
}

ClassNames parse_class_names(std::string_view text, const std::string& path) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  ClassNames names;
  std::unordered_set<std::string> known;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    names.push_back(unescaped(line));
    if (!names.back().empty() && known.insert(names.back()).second) continue;
    throw Error(ErrorKind::corrupt,
                names.back().empty() ? fmt::format("line {} names no class", names.size())
                                     : fmt::format("line {} names class '{}' once more",
                                                   names.size(), shown_name(names.back())),
                kOneALine, {.file = path});
  }
  return names;
}

ClassNames class_names_of(const std::string& text) {
  if (is_list(text)) return read_names(without_file_scheme(text));
  const auto data = open_data_set(text, {.keeps = false, .hold = false});
  if (!data->facts().labels.empty()) return data->facts().labels;
  throw Error(ErrorKind::not_found, "the data set does not name its classes",
              "name one that does, or a file with the name of one class a line", {.file = text});
}

void require_same_numbers(const NamedClasses& first, const NamedClasses& other,
                          const std::string& remedy) {
  if (first.names.empty() || other.names.empty()) return;
  for (std::size_t i = 0; i < other.names.size(); ++i) {
    if (i < first.names.size() && first.names[i] == other.names[i]) continue;
    const auto at = std::ranges::find(first.names, other.names[i]);
    const std::string there =
        at == first.names.end() ? "missing" : fmt::format("number {}", at - first.names.begin());
    throw Error(
        ErrorKind::usage,
        fmt::format("its classes are numbered otherwise than those of {}: '{}' is number {} "
                    "here, and {} in the other",
                    first.of, shown_name(other.names[i]), i, there),
        remedy.empty() ? fmt::format("pack it with '--classes {}'", first.of) : remedy,
        {.file = other.of});
  }
}

}  // namespace forebay
