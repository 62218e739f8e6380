// The central directory of a zip archive, also in its form for large archives (zip64). Functions of
// bytes that nobody trusts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/member_set.hpp"

namespace forebay::zip {

struct Entry {
  std::string name;
  /// From the local header to the next one, or as far as it can reach. Its checksum is the CRC-32
  /// of the part, XOR that of the name.
  Member member;
  CodedPart part;
  bool link = false;  ///< symbolic
};

/// Every file that the directory lists, in its order. Throws corrupt, unsupported, io, naming file,
/// member and offset.
std::vector<Entry> read_directory(const File& file, std::uint32_t number);

/// The local header that `stored` begins with.
struct LocalHeader {
  std::uint64_t bytes = 0;
  std::string_view name;
};
/// Throws corrupt where it is not whole.
LocalHeader local_header(std::span<const std::byte> stored);

}  // namespace forebay::zip
