// The date that results are stored with.
#pragma once

#include <ctime>
#include <string>

namespace forebay::bench {

/// "2026-03-07", universal time.
inline std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

}  // namespace forebay::bench
