// The log hook. The library itself never prints: messages go to the hook, and without one
// warnings and errors are dropped. The `forebay` command installs a hook that writes to stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace forebay {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

using LogHook = std::function<void(LogLevel, std::string_view)>;

/// Installs `hook` for messages of `level` and above; an empty hook removes it.
/// Thread-safe. The hook may be called from any thread, also from helper threads.
void set_log_hook(LogHook hook, LogLevel level = LogLevel::info);

/// A hook that writes to stderr through spdlog, colored on a terminal unless NO_COLOR is set.
LogHook stderr_log_hook();

bool log_enabled(LogLevel level);
void log_message(LogLevel level, std::string_view message);

}  // namespace forebay
