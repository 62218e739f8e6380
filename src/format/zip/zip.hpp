// Zip archives: what the central directory at the end of each lists.
//
//   [local header, bytes][local header, bytes] ... [central directory][its end]
//                                                   name, sizes, CRC-32, offset of the local header
//
//   1.jpg 1.cls 2.jpg 2.cls     parts by extension, samples by what comes before it, as in tar
//   a/1.jpg a/2.jpg b/1.jpg     nothing but images, in two folders or more: image and label, in the
//                               order of folders of files (format/folder)
//
// Local headers are read with the bytes behind them, not at open. Bytes that are stored are used in
// place, deflated ones are decoded; both are checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/member_set.hpp"
#include "format/registry.hpp"

namespace forebay::zip {

// The central directory of a zip archive, also in its form for large archives (zip64). Functions of
// bytes that nobody trusts.

struct Entry {
  std::string name;
  /// From the local header to the next one, or as far as it can reach. Its checksum is the CRC-32
  /// of the part, XOR that of the name.
  Member member;
  CodedPart part;
  bool link = false;  ///< symbolic
};

struct Directory {
  std::vector<Entry> entries;        ///< every file that it lists, in its order
  std::vector<std::string> folders;  ///< their names, which end in a slash
  std::uint64_t before = 0;          ///< bytes in front of the archive
};
/// Throws corrupt, unsupported, io, naming file, member and offset.
Directory read_directory(const File& file, std::uint32_t number);

/// The local header that `stored` begins with.
struct LocalHeader {
  std::uint64_t bytes = 0;
  std::string_view name;
};
/// Throws corrupt where it is not whole.
LocalHeader local_header(std::span<const std::byte> stored);

// One member, outside of samples. All throw corrupt, io; the caller names file and member.

/// Where the bytes of a member begin, stored or deflated.
std::uint64_t content_offset(const File& file, const Entry& entry);
/// Reads a member that is stored, a piece at a time, and throws where its bytes are others than its
/// CRC-32 was made of.
void check_stored(const File& file, const Entry& entry);
/// All bytes of a member, inflated and checked.
std::vector<std::byte> read_member(const File& file, const Entry& entry);

/// The samples of these archives. Throws corrupt, unsupported, io, naming file and offset.
FoundMembers find_members(const DataFiles& files);

Format zip_format();

}  // namespace forebay::zip
