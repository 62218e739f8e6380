// Whether bytes of a file are in memory already: then they can be used where they are.
#pragma once

#include <cstdint>

#include "forebay/storage.hpp"

namespace forebay {

/// Whether all pages of [offset, offset + length) are in the page cache. Reads nothing, and makes
/// nothing stay there. False where the system does not tell: before Linux 6.5, for files that are
/// not on a file system, and where it keeps that from this user. Thread-safe.
bool in_page_cache(const File& file, std::uint64_t offset, std::uint64_t length) noexcept;

}  // namespace forebay
