#include "storage/storages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "storage/answers.hpp"
#include "storage/file_error.hpp"
#include "storage/plugin.hpp"
#include "storage/url.hpp"

namespace forebay {

Storage disk_storage();
Storage memory_storage();

namespace {

std::vector<Storage> own_storages() { return {disk_storage(), memory_storage()}; }

struct Table {
  std::mutex mutex;  // never held while code of a storage runs
  std::vector<Storage> rows = own_storages();
  const std::size_t own = rows.size();
};

Table& table() {
  // Never destroyed: files may be opened until after the end of main.
  static auto* const all = new Table;
  return *all;
}

/// What plain paths are on.
const Storage& disk() {
  static const auto* const row = new Storage(disk_storage());
  return *row;
}

std::string schemes() {
  std::string text;
  for (const Storage& row : storages()) {
    text += fmt::format("{}{}://", text.empty() ? "" : ", ", row.scheme);
  }
  return text;
}

Storage find_storage(const std::string& scheme) {
  if (auto known = known_storage(scheme)) return *std::move(known);
  load_plugins_for(scheme);
  if (auto known = known_storage(scheme)) return *std::move(known);
  throw Error(ErrorKind::not_found,
              fmt::format("no storage is known for '{}://', only for {}", scheme, schemes()),
              fmt::format("check the word, or load a plug-in for it: '--storage-plugin PATH' or "
                          "{}=PATH, with an absolute path",
                          kPluginVariable));
}

/// The scheme of storage that may hang, of the first of several files in `text` that is on such
/// storage; empty: none is. Of a scheme that is not known yet nobody knows.
std::string hanging_scheme(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (const auto url = parse_url(text.substr(begin, end - begin))) {
      const auto known = known_storage(url->scheme);
      if (!known || known->may_hang) return url->scheme;
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::vector<Storage> storages() {
  const std::scoped_lock lock(table().mutex);
  return table().rows;
}

void add_storage(Storage storage) {
  if (!is_scheme(storage.scheme)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no scheme of a URL", storage.scheme),
                "a scheme is a small letter, then small letters, digits, '+', '-' or '.'");
  }
  const std::scoped_lock lock(table().mutex);
  auto& rows = table().rows;
  if (std::ranges::find(rows, storage.scheme, &Storage::scheme) != rows.end()) {
    throw Error(ErrorKind::usage, fmt::format("'{}://' is served already", storage.scheme),
                "add only one storage for it");
  }
  rows.push_back(std::move(storage));
}

std::optional<Storage> known_storage(const std::string& scheme) {
  const std::scoped_lock lock(table().mutex);
  const auto found = std::ranges::find(table().rows, scheme, &Storage::scheme);
  return found == table().rows.end() ? std::nullopt : std::optional(*found);
}

std::string who_serves(const std::string& scheme) {
  const std::scoped_lock lock(table().mutex);
  const auto& rows = table().rows;
  const auto found = std::ranges::find(rows, scheme, &Storage::scheme);
  if (found == rows.end()) return {};
  const auto place = static_cast<std::size_t>(found - rows.begin());
  return place < table().own ? "Forebay itself" : found->description;
}

void forget_added_storages() {
  std::vector<Storage> forgotten;  // goes without the lock: code of a storage may run
  const std::scoped_lock lock(table().mutex);
  auto& rows = table().rows;
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(table().own);
  forgotten.assign(std::move_iterator(first), std::move_iterator(rows.end()));
  rows.erase(first, rows.end());
}

std::shared_ptr<const File> open_file(const std::string& path, Engine engine) {
  const auto url = parse_url(path);
  if (!url) return disk().open(path, engine);
  try {
    const Storage storage = find_storage(url->scheme);
    if (storage.maps || engine != Engine::mmap) return storage.open(url->rest, engine);
    throw Error(ErrorKind::unsupported, fmt::format("{} cannot be mapped", storage.description),
                "use '--engine pread'");
  } catch (const Error& error) {
    throw error.within({.file = path});
  }
}

bool storage_has(const std::string& text) {
  const auto url = parse_url(text);
  const Storage storage = url ? find_storage(url->scheme) : disk();
  const std::string& name = url ? url->rest : text;
  if (storage.has) return storage.has(name);
  try {
    storage.open(name, Engine::pread);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::usage) return false;
    throw;
  }
}

bool is_on_local_disk(const std::string& text) {
  if (const auto url = parse_url(text)) {
    return find_storage(url->scheme).open(url->rest, Engine::pread)->is_local();
  }
  return is_local_file_system(file_system_of(text));
}

bool can_map(const std::string& text) {
  const auto url = parse_url(text);
  const auto known = url ? known_storage(url->scheme) : disk();
  return known && known->maps;
}

void ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                 std::function<void()> step) {
  const std::string scheme = hanging_scheme(path);
  if (scheme.empty()) {
    with_answers({.each_read = timeout, .path = path}, "fb-open", {}, std::move(step));
    return;
  }
  if (returns_within(timeout, "fb-open", std::move(step))) return;
  const auto known = known_storage(scheme);
  throw Error(ErrorKind::io,
              fmt::format("{} gave no answer for {} s when it was to {}",
                          known ? known->description
                                : fmt::format("the storage plug-in for '{}://'", scheme),
                          static_cast<double>(timeout.count()) / 1000, what),
              "see whether the storage behind it answers, or raise --timeout", {.file = path});
}

// The plug-ins of this process, each of which becomes a row of the table.

namespace {

struct LoadedPlugin {
  std::string path;
  std::string scheme;
};

struct LoadedPlugins {
  std::mutex mutex;  // held while a plug-in starts: whoever needs the same one waits for it
  std::vector<LoadedPlugin> all;
};

LoadedPlugins& loaded() {
  // Never destroyed: files may be opened until after the end of main.
  static auto* const plugins = new LoadedPlugins;
  return *plugins;
}

// So that plug-ins are shut down, where nobody has a file of theirs open.
void forget_at_exit() {
  static const int registered = std::atexit(forget_added_storages);
  static_cast<void>(registered);
}

std::string load_locked(const std::string& path) {
  std::error_code ignored;
  for (const LoadedPlugin& plugin : loaded().all) {
    if (plugin.path == path || std::filesystem::equivalent(plugin.path, path, ignored)) {
      return plugin.scheme;
    }
  }
  const auto plugin = StoragePlugin::load(path, who_serves);
  add_storage({.scheme = plugin->scheme(),
               .description = fmt::format("the storage plug-in {}", path),
               .open = [plugin](const std::string& name, Engine) { return plugin->open(name); },
               .may_hang = true});
  loaded().all.push_back({.path = path, .scheme = plugin->scheme()});
  forget_at_exit();
  return plugin->scheme();
}

}  // namespace

void load_plugins_for(const std::string& scheme) {
  const std::scoped_lock lock(loaded().mutex);
  if (known_storage(scheme)) return;
  const char* variable = std::getenv(kPluginVariable);
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) load_locked(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::string load_storage_plugin(const std::string& path) {
  const std::scoped_lock lock(loaded().mutex);
  return load_locked(path);
}

}  // namespace forebay
