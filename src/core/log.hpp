// Internal side of the log hook: see include/forebay/log.hpp.
#pragma once

#include <fmt/format.h>

#include "forebay/log.hpp"

namespace forebay {

/// Formats only when a sink would take the message.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_message(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace forebay
