// The central directory of a zip archive, also in its form for large archives (zip64). Functions of
// bytes that nobody trusts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/member_set.hpp"

namespace forebay::zip {

struct Entry {
  std::string name;
  Member member;  ///< from the local header to the next one, or as far as it can reach
  CodedPart part;
};

/// Every file that the directory lists, in its order. Throws corrupt, unsupported, io, naming file,
/// member and offset.
std::vector<Entry> read_directory(const File& file, std::uint32_t number);

/// How many bytes of header lie before the bytes of a member, whose local header `stored` begins
/// with. Throws corrupt.
std::uint64_t local_header_bytes(std::span<const std::byte> stored);

}  // namespace forebay::zip
