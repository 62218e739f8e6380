// What the page cache has of a file, and what it should expect.
#pragma once

#include <cstdint>

#include "forebay/storage.hpp"

namespace forebay {

/// Whether all pages of [offset, offset + length) are in the page cache. Reads nothing, and makes
/// nothing stay there. False where the system does not tell: before Linux 6.5, for files that are
/// not on a file system, and where it keeps that from this user. Thread-safe.
bool in_page_cache(const File& file, std::uint64_t offset, std::uint64_t length) noexcept;

/// Tells the system that reads of `file` come at random places: what lies behind one is not read
/// ahead. Holds for as long as the file is open, and not for mappings. Thread-safe.
void expect_scattered_reads(const File& file) noexcept;

}  // namespace forebay
