// Errors of the commands mostly speak of a file as a whole.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {

inline Where at_file(std::string path, std::optional<std::uint64_t> offset = {}) {
  return {.file = std::move(path), .offset = offset, .sample = {}, .key = {}};
}

}  // namespace forebay
