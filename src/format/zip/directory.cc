#include "format/zip/zip.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/dataset_files.hpp"

namespace forebay::zip {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kLocal = "PK\3\4";
constexpr std::string_view kCentral = "PK\1\2";
constexpr std::string_view kEnd = "PK\5\6";
constexpr std::string_view kEnd64 = "PK\6\6";
constexpr std::string_view kLocator64 = "PK\6\7";

constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint64_t kLocator64Bytes = 20;
constexpr std::uint64_t kLongest = 65535;  // a name, a comment, or the extra bytes of a header
// Instead of numbers that are told elsewhere.
constexpr std::uint64_t kElsewhere16 = 0xFFFF;
constexpr std::uint64_t kElsewhere32 = 0xFFFFFFFF;

[[noreturn]] void damaged(const std::string& what, std::uint64_t offset) {
  throw Error(ErrorKind::corrupt, what, "the archive is damaged: copy it again from its source",
              {.offset = offset});
}

bool begins_with(std::span<const std::byte> bytes, std::string_view mark) {
  return chars_of(bytes).starts_with(mark);
}

/// Where the central directory is.
struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t before = 0;  ///< bytes in front of the archive, which no offset counts
};

std::vector<std::byte> read(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> content(bytes);
  file.read(offset, content);
  return content;
}

/// Whether the record at `end` has a directory right before it, or says where it is told: the mark
/// of its begin may stand in the comment that follows it as well.
bool ends_directory(const File& file, std::uint64_t end, std::span<const std::byte> record) {
  const std::uint64_t entries = load<std::uint16_t>(record, 10);
  const std::uint64_t bytes = load<std::uint32_t>(record, 12);
  if (entries == kElsewhere16 || bytes == kElsewhere32) return true;
  if (bytes < kCentralBytes || bytes > end) return entries == 0 && bytes == 0;
  return begins_with(read(file, end - bytes, kCentral.size()), kCentral);
}

/// The offset of the mark that ends the archive.
std::uint64_t find_end(const File& file) {
  const std::uint64_t size = file.size();
  const std::uint64_t begin = size - std::min(size, kEndBytes + kLongest);
  const auto tail = read(file, begin, size - begin);
  const std::string_view text = chars_of(tail);
  std::size_t last = std::string_view::npos;
  for (std::size_t at = text.rfind(kEnd); at != std::string_view::npos;
       at = at == 0 ? at - 1 : text.rfind(kEnd, at - 1)) {
    if (tail.size() - at < kEndBytes) continue;
    if (ends_directory(file, begin + at, std::span(tail).subspan(at))) return begin + at;
    if (last == std::string_view::npos) last = at;
  }
  if (last != std::string_view::npos) return begin + last;
  damaged("the archive has no central directory at its end", size);
}

/// The same for archives of more than 4 GiB or 65,535 members; nothing where there is none.
std::optional<Place> find_directory_64(const File& file, std::uint64_t end) {
  if (end < kLocator64Bytes + kEnd64Bytes) return std::nullopt;
  const auto locator = read(file, end - kLocator64Bytes, kLocator64Bytes);
  if (!begins_with(locator, kLocator64)) return std::nullopt;
  const std::uint64_t at = end - kLocator64Bytes - kEnd64Bytes;
  const auto record = read(file, at, kEnd64Bytes);
  if (!begins_with(record, kEnd64)) damaged("the end of the central directory is no record", at);
  return Place{.offset = load<std::uint64_t>(record, 48),
               .bytes = load<std::uint64_t>(record, 40),
               .entries = load<std::uint64_t>(record, 32),
               .before = at};
}

Place find_directory(const File& file) {
  const std::uint64_t end = find_end(file);
  const auto record = read(file, end, kEndBytes);
  const std::uint64_t disk = load<std::uint16_t>(record, 4);
  const std::uint64_t first_disk = load<std::uint16_t>(record, 6);
  if ((disk != 0 && disk != kElsewhere16) || (first_disk != 0 && first_disk != kElsewhere16)) {
    throw Error(ErrorKind::unsupported, "the archive is split over several files",
                "join it: zip -s 0 SPLIT.zip --out WHOLE.zip", {.offset = end});
  }
  Place place{.offset = load<std::uint32_t>(record, 16),
              .bytes = load<std::uint32_t>(record, 12),
              .entries = load<std::uint16_t>(record, 10),
              .before = end};
  if (place.offset == kElsewhere32 || place.bytes == kElsewhere32 ||
      place.entries == kElsewhere16) {
    if (const auto large = find_directory_64(file, end)) place = *large;
  }
  // It lies right before its end.
  if (place.bytes > place.before || place.offset > place.before - place.bytes) {
    damaged(fmt::format("a central directory of {} bytes at {} does not fit the archive",
                        place.bytes, place.offset),
            end);
  }
  place.before -= place.bytes + place.offset;
  return place;
}

[[noreturn]] void refuse(const Entry& entry, const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::unsupported, fmt::format("'{}' {}", shown_name(entry.name), what), remedy);
}

/// Numbers of 64 bits that `extra` has for those that do not fit into 32.
class Large {
 public:
  explicit Large(std::span<const std::byte> extra) {
    constexpr std::uint16_t kId = 1;
    while (extra.size() >= 4) {
      const std::uint64_t bytes = load<std::uint16_t>(extra, 2);
      if (bytes > extra.size() - 4) return;
      if (load<std::uint16_t>(extra, 0) == kId) rest_ = extra.subspan(4, bytes);
      extra = extra.subspan(4 + bytes);
    }
  }
  std::uint64_t take(std::uint32_t small) {
    if (small != kElsewhere32) return small;
    if (rest_.size() < 8) damaged("a size of more than 32 bits is not there", 0);
    const auto value = load<std::uint64_t>(rest_, 0);
    rest_ = rest_.subspan(8);
    return value;
  }

 private:
  std::span<const std::byte> rest_;
};

bool is_folder(const Entry& entry) { return entry.name.ends_with('/'); }

void require_readable(const Entry& entry, std::uint16_t flags, std::uint16_t method) {
  if ((flags & 1) != 0) {
    refuse(entry, "is encrypted", "pack the archive again without a password");
  }
  if (method == 0 || method == 8) return;
  refuse(entry, fmt::format("is compressed by method {}", method),
         "pack the archive again, stored (zip -0) or deflated");
}

/// The directory's record at the begin of `bytes`, which becomes shorter by it; of a folder its
/// name alone.
Entry take_entry(std::span<const std::byte>& bytes, std::uint64_t before) {
  if (bytes.size() < kCentralBytes || !begins_with(bytes, kCentral)) {
    damaged("the central directory is no list of members", 0);
  }
  const std::uint64_t name = load<std::uint16_t>(bytes, 28);
  const std::uint64_t extra = load<std::uint16_t>(bytes, 30);
  const std::uint64_t comment = load<std::uint16_t>(bytes, 32);
  if (name + extra + comment > bytes.size() - kCentralBytes) {
    damaged("a record of the central directory ends behind it", 0);
  }
  Entry entry{.name = std::string(chars_of(bytes.subspan(kCentralBytes, name)))};
  Large large(bytes.subspan(kCentralBytes + name, extra));
  const std::uint64_t content = large.take(load<std::uint32_t>(bytes, 24));
  const std::uint64_t stored = large.take(load<std::uint32_t>(bytes, 20));
  const std::uint64_t local = large.take(load<std::uint32_t>(bytes, 42));
  const auto flags = load<std::uint16_t>(bytes, 8);
  const auto method = load<std::uint16_t>(bytes, 10);
  const std::uint32_t mode = load<std::uint32_t>(bytes, 38) >> 16;  // of Unix
  entry.link = (mode & 0xF000) == 0xA000;
  entry.member.checksum =
      load<std::uint32_t>(bytes, 16) ^ libdeflate_crc32(0, entry.name.data(), entry.name.size());
  bytes = bytes.subspan(kCentralBytes + name + extra + comment);
  if (is_folder(entry)) return entry;
  require_readable(entry, flags, method);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  // The best that deflate can do, by its format: 258 bytes for two bits.
  constexpr std::uint64_t kMostDeflated = 1032;
  const bool fit = content < kMost && stored < kMost && local < kMost &&
                   (method == 0 ? content == stored : content / kMostDeflated <= stored);
  if (!fit) {
    damaged(fmt::format("'{}' claims {} bytes out of {}", shown_name(entry.name), content, stored),
            0);
  }
  entry.part = {.bytes = content, .in_place = method == 0 || content == 0};
  entry.member.offset = before + local;
  entry.member.bytes = kLocalBytes + name + stored;
  return entry;
}

/// From each local header to the next one, as local headers may be longer than the directory says.
void find_ends(std::vector<Entry>& entries, std::uint64_t directory) {
  std::vector<std::uint64_t> begins{directory};
  for (const Entry& entry : entries) begins.push_back(entry.member.offset);
  std::ranges::sort(begins);
  if (const auto twice = std::ranges::adjacent_find(begins); twice != begins.end()) {
    damaged("two members are at one place", *twice);
  }
  for (Entry& entry : entries) {
    Member& member = entry.member;
    const auto next = std::ranges::upper_bound(begins, member.offset);
    if (next == begins.end() || *next - member.offset < member.bytes) {
      damaged(fmt::format("'{}' reaches into what follows it", shown_name(entry.name)),
              member.offset);
    }
    member.bytes = std::min(*next - member.offset, member.bytes + kLongest);
  }
}

}  // namespace

Directory read_directory(const File& file, std::uint32_t number) {
  try {
    const Place place = find_directory(file);
    const auto bytes = read(file, place.before + place.offset, place.bytes);
    std::span<const std::byte> rest = bytes;
    Directory found{.entries = {}, .folders = {}, .before = place.before};
    std::uint64_t listed = 0;
    while (!rest.empty()) {
      const std::uint64_t at = place.before + place.offset + bytes.size() - rest.size();
      try {
        Entry entry = take_entry(rest, place.before);
        if (is_folder(entry)) {
          found.folders.push_back(std::move(entry.name));
        } else {
          found.entries.push_back(std::move(entry));
        }
      } catch (const Error& error) {
        throw Error(error.kind(), error.happened(), error.remedy(), {.offset = at});
      }
      ++listed;
    }
    if (listed != place.entries) {
      damaged(fmt::format("the central directory lists {} members, not {}", listed, place.entries),
              place.before + place.offset);
    }
    for (Entry& entry : found.entries) entry.member.file = number;
    find_ends(found.entries, place.before + place.offset);
    return found;
  } catch (const Error& error) {
    throw error.within({.file = file.path()});
  }
}

LocalHeader local_header(std::span<const std::byte> stored) {
  constexpr const char* kRemedy = "the archive is damaged: copy it again from its source";
  if (stored.size() < kLocalBytes || !begins_with(stored, kLocal)) {
    throw Error(ErrorKind::corrupt, "there is no header in front of its bytes", kRemedy);
  }
  const std::uint64_t name = load<std::uint16_t>(stored, 26);
  const std::uint64_t bytes = kLocalBytes + name + load<std::uint16_t>(stored, 28);
  if (bytes > stored.size()) {
    throw Error(ErrorKind::corrupt, "its header is longer than what follows", kRemedy);
  }
  return {.bytes = bytes, .name = chars_of(stored.subspan(kLocalBytes, name))};
}

}  // namespace forebay::zip
