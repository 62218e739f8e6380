#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace forebay {
namespace {

// Process-wide, as an exception: a log must be reachable from code that was
// handed no object, such as a helper thread that is about to end.
struct Hook {
  std::mutex mutex;
  std::shared_ptr<const LogHook> function;
  std::atomic<int> level{static_cast<int>(LogLevel::error) + 1};
};

Hook& hook() {
  static Hook instance;
  return instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_log_hook(LogHook function, LogLevel level) {
  const std::lock_guard lock(hook().mutex);
  const bool installed = static_cast<bool>(function);
  hook().function = installed ? std::make_shared<const LogHook>(std::move(function)) : nullptr;
  hook().level = installed ? static_cast<int>(level) : static_cast<int>(LogLevel::error) + 1;
}

LogHook stderr_log_hook() {
  const char* no_color = std::getenv("NO_COLOR");
  const auto mode = no_color != nullptr && *no_color != '\0' ? spdlog::color_mode::never
                                                             : spdlog::color_mode::automatic;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode);
  auto logger = std::make_shared<spdlog::logger>("forebay", std::move(sink));
  logger->set_pattern("forebay: %^%l%$: %v");
  logger->set_level(spdlog::level::trace);
  return [logger](LogLevel level, std::string_view message) {
    logger->log(spdlog_level(level), message);
  };
}

bool log_enabled(LogLevel level) {
  return static_cast<int>(level) >= hook().level.load(std::memory_order_relaxed);
}

void log_message(LogLevel level, std::string_view message) {
  std::shared_ptr<const LogHook> function;
  {
    const std::lock_guard lock(hook().mutex);
    function = hook().function;
  }
  if (function && log_enabled(level)) (*function)(level, message);
}

}  // namespace forebay
