// What the library says while a test looks on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/log.hpp"

namespace forebay::test {

/// Collects what the library logs while it lives.
class LogCatcher {
 public:
  LogCatcher() {
    set_log_hook(
        [this](LogLevel, std::string_view message) {
          const std::lock_guard lock(mutex_);
          messages_.emplace_back(message);
        },
        LogLevel::warning);
  }
  ~LogCatcher() { set_log_hook({}); }
  LogCatcher(const LogCatcher&) = delete;
  LogCatcher& operator=(const LogCatcher&) = delete;

  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  std::size_t count(std::string_view part) const {
    const auto all = messages();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const auto& one) { return one.find(part) != std::string::npos; }));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

}  // namespace forebay::test
