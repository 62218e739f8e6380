// WebDataset's tar shards: consecutive members of one name are a sample, their extensions its
// parts.
//
//   0001.jpg 0001.cls 0002.jpg 0002.cls ...
//
// One walk from header to header finds them; content is not read. Compressed archives are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/member_set.hpp"
#include "format/registry.hpp"

namespace forebay::tar {

// Headers of tar archives: POSIX (ustar, PAX) and GNU. Pure functions of bytes that nobody trusts.

inline constexpr std::uint64_t kBlock = 512;

enum class MemberKind : std::uint8_t {
  file,
  directory,
  link,       ///< hard or symbolic
  other,      ///< a device, a pipe
  sparse,     ///< with holes left out, of GNU tar
  long_name,  ///< its content is the name of the next member, of GNU tar
  long_link,
  attributes,         ///< its content is about the next member (PAX)
  global_attributes,  ///< about all that follow (PAX)
};

struct Header {
  std::string name;
  std::uint64_t size = 0;  ///< of the content, which follows in whole blocks
  MemberKind kind = MemberKind::file;
};

/// Whether the block is one of the zeros that end an archive.
bool is_end(std::span<const std::byte, kBlock> block);
/// Whether the block may be a header: its checksum is right.
bool is_header(std::span<const std::byte, kBlock> block);
/// Throws corrupt.
Header parse_header(std::span<const std::byte, kBlock> block);

/// What PAX records say of the next member, as far as reading it needs that.
struct Attributes {
  std::optional<std::string> path;
  std::optional<std::uint64_t> size;
  bool sparse = false;
};
/// Throws corrupt.
Attributes parse_attributes(std::string_view records);

/// Goes through the headers of `file`, which is number `number` of a data set. Throws corrupt,
/// unsupported, io, naming file and offset.
void find_members(const File& file, std::uint32_t number, FoundMembers& found);

Format tar_format();

}  // namespace forebay::tar
