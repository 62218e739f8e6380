#include "format/convention/database_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "forebay/error.hpp"
#include "format/dataset_files.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"

namespace forebay::convention {
namespace {

bool has_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

/// Whether a file is there, perhaps in front of a '#NAME'. What other storages have is not asked.
bool exists(const std::string& text) {
  if (is_foreign(text) || storage_has(text)) return true;
  for (auto at = text.rfind('#'); at != std::string::npos && at > 0; at = text.rfind('#', at - 1)) {
    if (storage_has(text.substr(0, at))) return true;
  }
  return false;
}

/// `text`, or what it is without escapes where that exists.
std::string there(const std::string& text) {
  const std::string name = without_escapes(text);
  return name != text && !exists(text) && exists(name) ? name : text;
}

/// What lies beside databases and is none.
bool is_companion(const std::string& path) {
  return path.ends_with("-lock") || path.ends_with(".forebay") || path.ends_with(".classes");
}

std::vector<std::string> matches(const std::string& pattern) {
  auto hash = std::min(pattern.rfind('#'), pattern.size());
  if (hash > 0 && hash < pattern.size() && pattern[hash - 1] == '\\') hash = pattern.size();
  std::vector<std::string> found = find_files(pattern.substr(0, hash));
  std::erase_if(found, is_companion);
  if (found.empty()) {
    throw Error(ErrorKind::not_found, "the pattern matches no database", "check the path",
                {.file = pattern});
  }
  for (std::string& path : found) path += pattern.substr(hash);
  return found;
}

std::vector<std::string> expand(const std::string& text) {
  const bool list = text.find(',') != std::string::npos;
  if (storage_has(text)) return {text};
  if (!list && !has_pattern(text)) return {there(text)};
  const std::vector<std::string> pieces = split_names(text, ',');
  const bool all_there = std::ranges::all_of(
      pieces, [](const std::string& piece) { return exists(there(piece)) || has_pattern(piece); });
  if (!all_there && exists(text)) return {text};  // a named database with a comma in its name
  std::vector<std::string> paths;
  for (const std::string& piece : pieces) {
    if (const std::string path = there(piece); exists(path) || !has_pattern(piece)) {
      paths.push_back(path);
    } else {
      const auto more = matches(piece);
      paths.insert(paths.end(), more.begin(), more.end());
    }
  }
  return paths;
}

}  // namespace

std::vector<PartDatabases> find_databases(const std::string& text) {
  std::vector<PartDatabases> parts;
  for (const NamedFiles& side : files_beside(text)) {
    parts.push_back({.name = side.name, .paths = expand(side.text)});
  }
  if (parts.empty()) parts.push_back({.name = {}, .paths = expand(text)});
  return parts;
}

std::vector<std::string> all_databases(const std::string& text) {
  std::vector<std::string> all;
  for (const PartDatabases& part : find_databases(text)) {
    all.insert(all.end(), part.paths.begin(), part.paths.end());
  }
  return all;
}

}  // namespace forebay::convention
