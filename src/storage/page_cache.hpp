// What the page cache has of a file, and what it should expect.
#pragma once

#include <cstdint>

#include "forebay/storage.hpp"

namespace forebay {

/// Whether all pages of [offset, offset + length) are in the page cache. Reads nothing, and makes
/// nothing stay there. False where the system does not tell: before Linux 6.5, for files that are
/// not on a file system, and where it keeps that from this user. Thread-safe.
bool in_page_cache(const File& file, std::uint64_t offset, std::uint64_t length) noexcept;

enum class Reads : std::uint8_t { scattered, forward };

/// Tells the system where the next reads of `file` come from: only behind those that go forward is
/// anything read ahead. Until it is told, reads count as scattered. Holds until it is told
/// something else, not for mappings, and not for the files of a FilePool. Thread-safe.
void expect_reads(const File& file, Reads where) noexcept;

}  // namespace forebay
