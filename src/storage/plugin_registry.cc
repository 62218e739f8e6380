#include "storage/plugin_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bounded_call.hpp"
#include "storage/url.hpp"

namespace forebay {
namespace {

class PluginRegistry {
 public:
  std::shared_ptr<const StoragePlugin> find(const std::string& scheme) {
    const std::lock_guard lock(mutex_);
    if (auto known = known_for(scheme)) return known;
    load_environment();
    if (auto known = known_for(scheme)) return known;
    throw Error(ErrorKind::not_found,
                fmt::format("no storage is known for '{}://', only for {}", scheme, schemes()),
                fmt::format("check the word, or load a plug-in for it: '--storage-plugin PATH' or "
                            "{}=PATH, with an absolute path",
                            kPluginVariable));
  }

  std::string load(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return load_locked(path);
  }

  /// What serves `scheme`, in words: waits for nobody, and loads nothing.
  std::string name_of(const std::string& scheme) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto known = lock ? known_for(scheme) : nullptr;
    if (known) return fmt::format("the storage plug-in {}", known->path());
    return fmt::format("the storage plug-in for '{}://'", scheme);
  }

  // Files that are still open keep their plug-in. One that does not start holds up nobody.
  void forget() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) plugins_.clear();
  }

 private:
  std::shared_ptr<const StoragePlugin> known_for(std::string_view scheme) const {
    const auto found = std::ranges::find(plugins_, scheme, &StoragePlugin::scheme);
    return found == plugins_.end() ? nullptr : *found;
  }

  std::string schemes() const {
    std::string text = "file://, mem://";
    for (const auto& plugin : plugins_) text += fmt::format(", {}://", plugin->scheme());
    return text;
  }

  std::string load_locked(const std::string& path) {
    std::error_code ignored;
    for (const auto& plugin : plugins_) {
      if (plugin->path() == path || std::filesystem::equivalent(plugin->path(), path, ignored)) {
        return plugin->scheme();
      }
    }
    auto plugin = StoragePlugin::load(path, [this](const std::string& scheme) {
      const auto known = known_for(scheme);
      if (known) return fmt::format("the plug-in {}", known->path());
      return std::string(scheme == "file" || scheme == "mem" ? "Forebay itself" : "");
    });
    plugins_.push_back(plugin);
    forget_at_exit();
    return plugin->scheme();
  }

  void load_environment() {
    const char* variable = std::getenv(kPluginVariable);
    std::string_view rest = variable == nullptr ? "" : variable;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) load_locked(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  void forget_at_exit();

  std::mutex mutex_;
  std::vector<std::shared_ptr<const StoragePlugin>> plugins_;
};

PluginRegistry& registry() {
  // Never destroyed: files may be opened until after the end of main.
  static auto* const plugins = new PluginRegistry;
  return *plugins;
}

// So that plug-ins are shut down, where nobody has a file of theirs open.
void PluginRegistry::forget_at_exit() {
  static const int registered = std::atexit([] { registry().forget(); });
  static_cast<void>(registered);
}

}  // namespace

std::shared_ptr<const StoragePlugin> plugin_for(const std::string& scheme) {
  return registry().find(scheme);
}

void ask_storage(const std::string& path, std::chrono::milliseconds timeout, const char* what,
                 std::function<void()> step) {
  const std::string scheme = plugin_scheme(path);
  if (scheme.empty()) return step();
  if (returns_within(timeout, "fb-open", std::move(step))) return;
  throw Error(
      ErrorKind::io,
      fmt::format("{} gave no answer for {} s when it was to {}", registry().name_of(scheme),
                  static_cast<double>(timeout.count()) / 1000, what),
      "see whether the storage behind it answers, or raise --timeout", {.file = path});
}

std::string load_storage_plugin(const std::string& path) { return registry().load(path); }

}  // namespace forebay
