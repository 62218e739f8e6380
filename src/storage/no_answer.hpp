// The errors of a read that was given up. Internal to storage/.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "forebay/error.hpp"

namespace forebay {

/// How long requests in flight are waited for once a read was stopped, or has waited in vain.
inline constexpr std::chrono::milliseconds kStopGrace{1000};

inline Error no_answer_error(const std::string& path, std::uint64_t offset,
                             std::chrono::milliseconds waited) {
  const auto seconds = static_cast<double>(waited.count()) / 1000;
  return {ErrorKind::io, fmt::format("no answer from the file system for {} s", seconds),
          "check the server and the network (the kernel's log says more), or allow more time",
          Where{.file = path, .offset = offset}};
}

inline Error stopped_error(const std::string& path) {
  return {ErrorKind::cancelled, "reading was stopped before it was complete", "",
          Where{.file = path}};
}

inline Error abandoned_error(const std::string& path) {
  return {ErrorKind::io, "an earlier read got no answer from the file system",
          "open the data set again once its server answers", Where{.file = path}};
}

}  // namespace forebay
