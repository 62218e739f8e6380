#include "format/tar/tar.hpp"

#include <algorithm>
#include <charconv>

#include "forebay/error.hpp"

namespace forebay::tar {
namespace {

struct Place {
  std::size_t begin;
  std::size_t bytes;
};

constexpr Place kName{0, 100};
constexpr Place kSize{124, 12};
constexpr Place kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Place kMagic{257, 6};
constexpr Place kPrefix{345, 155};

std::string_view text_at(std::span<const std::byte, kBlock> block, const Place& place) {
  const std::string_view whole = chars_of(block.subspan(place.begin, place.bytes));
  return whole.substr(0, whole.find('\0'));
}

[[noreturn]] void damaged(const char* what) {
  throw Error(ErrorKind::corrupt, what, "the archive is damaged: copy it again from its source");
}

std::uint64_t parse_octal(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  text = text.substr(0, text.find(' '));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size())) {
    damaged("a number of a tar header is not octal");
  }
  return value;
}

/// Octal digits, or, from the high bit on, the number itself with its high byte first.
std::uint64_t number_at(std::span<const std::byte, kBlock> block, const Place& place) {
  const auto bytes = block.subspan(place.begin, place.bytes);
  const auto first = std::to_integer<unsigned>(bytes[0]);
  if (first < 0x80) return parse_octal(text_at(block, place));
  if (first != 0x80) damaged("a tar header claims a negative size, or more than 2^63 bytes");
  std::uint64_t value = 0;
  for (const std::byte byte : bytes.subspan(1)) {
    if (value >> 55 != 0) damaged("a tar header claims more than 2^63 bytes");
    value = value << 8 | std::to_integer<std::uint64_t>(byte);
  }
  return value;
}

/// The sum of all bytes, those of the checksum itself being spaces.
std::uint64_t checksum_of(std::span<const std::byte, kBlock> block) {
  std::uint64_t sum = kChecksum.bytes * ' ';
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool itself = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.bytes;
    if (!itself) sum += std::to_integer<std::uint64_t>(block[i]);
  }
  return sum;
}

MemberKind kind_of(char type) {
  switch (type) {
    case '\0':
    case '0':
    case '7':
      return MemberKind::file;
    case '1':
    case '2':
      return MemberKind::link;
    case '5':
      return MemberKind::directory;
    case 'S':
      return MemberKind::sparse;
    case 'L':
      return MemberKind::long_name;
    case 'K':
      return MemberKind::long_link;
    case 'x':
      return MemberKind::attributes;
    case 'g':
      return MemberKind::global_attributes;
    default:
      return MemberKind::other;
  }
}

}  // namespace

bool is_end(std::span<const std::byte, kBlock> block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_header(std::span<const std::byte, kBlock> block) {
  if (is_end(block)) return false;
  try {
    return number_at(block, kChecksum) == checksum_of(block);
  } catch (const Error&) {
    return false;
  }
}

Header parse_header(std::span<const std::byte, kBlock> block) {
  if (number_at(block, kChecksum) != checksum_of(block)) {
    damaged("a tar header does not fit its checksum");
  }
  Header header{.name = std::string(text_at(block, kName)),
                .size = number_at(block, kSize),
                .kind = kind_of(static_cast<char>(block[kType]))};
  // GNU has other things where ustar has the prefix.
  const std::string_view prefix = text_at(block, kPrefix);
  if (text_at(block, kMagic) == "ustar" && !prefix.empty()) {
    header.name = std::string(prefix) + "/" + header.name;
  }
  // Of links and directories the size says nothing about what follows.
  if (header.kind == MemberKind::directory || header.kind == MemberKind::link) header.size = 0;
  return header;
}

// Records are "LENGTH KEY=VALUE\n", where the length counts all of itself.
Attributes parse_attributes(std::string_view records) {
  Attributes found;
  while (!records.empty() && records.front() != '\0') {
    std::uint64_t length = 0;
    const char* const end = records.data() + records.size();
    const auto [space, error] = std::from_chars(records.data(), end, length);
    const auto digits = static_cast<std::size_t>(space - records.data());
    if (error != std::errc() || space == end || *space != ' ' || length > records.size() ||
        length < digits + 3 || records[length - 1] != '\n') {
      damaged("the extended attributes of a tar member are no records");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) damaged("an extended attribute of a tar member is empty");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") found.path = value;
    if (key == "size") {
      std::uint64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) {
        damaged("the size of a tar member is no number");
      }
      found.size = size;
    }
    found.sparse = found.sparse || key.starts_with("GNU.sparse.");
    records.remove_prefix(length);
  }
  return found;
}

}  // namespace forebay::tar
