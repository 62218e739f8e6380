// The plug-ins of this process, each of which becomes a row of the table of storages.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/plugin.hpp"
#include "storage/storages.hpp"

namespace forebay {
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
