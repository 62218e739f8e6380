// How an image has to be turned to stand upright: where files say so, and what they say.
//
//   JPEG: APP1 "Exif\0\0" TIFF..., APP1 "http://ns.adobe.com/xap/1.0/\0" XMP...
//   PNG:  chunk eXIf TIFF...
//         text "XML:com.adobe.xmp": XMP...
//         text "Raw profile type exif": "\nexif\n length\n" and TIFF... as hexadecimal digits,
//         which is how ImageMagick wrote it before there was eXIf A text is a chunk:  tEXt
//         keyword\0 text        zTXt keyword\0 0 packed text
//                             iTXt keyword\0 is-it-packed 0 language\0 keyword\0 text
//   TIFF: "II" 42 or "MM" 42, offset of a directory: count, entries of tag, type, count, value
//
// Every number is compared with what is left before it is used; nothing is followed twice.
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "format/byte_stream.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

using Bytes = std::span<const std::byte>;

/// The first `size` bytes behind `at`; nothing where there are fewer.
std::optional<Bytes> piece(Bytes bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return {};
  return bytes.subspan(at, size);
}

/// An unsigned number of all of `bytes`.
std::uint32_t number(Bytes bytes, bool big_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value =
        value << 8 | std::to_integer<std::uint32_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  }
  return value;
}

bool cut_prefix(Bytes& bytes, std::string_view prefix) {
  if (!chars_of(bytes).starts_with(prefix)) return false;
  bytes = bytes.subspan(prefix.size());
  return true;
}

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::size_t kEntryBytes = 12;
enum FieldType : std::uint32_t {
  kShort = 3,
  kLong = 4,
  kSignedByte = 6,
  kSignedShort = 8,
  kSignedLong = 9,
  kDirectory = 13
};

/// The bytes of a whole number of `type`; 0: it is none. Those of text (type 1) say no number.
std::size_t size_of_number(std::uint32_t type) {
  switch (type) {
    case kSignedByte:
      return 1;
    case kShort:
    case kSignedShort:
      return 2;
    case kLong:
    case kSignedLong:
    case kDirectory:
      return 4;
    default:
      return 0;
  }
}

/// The value of a directory's entry, if it is one whole number or begins with one.
std::optional<std::uint32_t> whole_number(Bytes tiff, Bytes entry, bool big_endian) {
  const std::uint32_t type = number(entry.subspan(2, 2), big_endian);
  const std::uint32_t count = number(entry.subspan(4, 4), big_endian);
  const std::size_t size = size_of_number(type);
  if (size == 0 || count == 0) return {};
  // Values of more than four bytes lie elsewhere.
  const std::uint64_t all = std::uint64_t{count} * size;
  const auto values =
      all <= 4 ? piece(entry, 8, all) : piece(tiff, number(entry.subspan(8, 4), big_endian), all);
  if (!values) return {};
  return number(values->first(size), big_endian);
}

unsigned valid(std::uint32_t orientation) {
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

/// What EXIF and XMP blocks have said: the first of each kind counts.
struct Said {
  std::optional<unsigned> exif, xmp;

  unsigned orientation() const { return exif.value_or(xmp.value_or(1)); }
};

constexpr unsigned kStartOfScan = 0xda, kEndOfImage = 0xd9, kApp1 = 0xe1;

/// A marker that no length follows.
bool stands_alone(unsigned marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8); }

void read_app1(Bytes segment, Said& said) {
  if (chars_of(segment).starts_with(std::string_view("Exif\0\0", 6))) {
    if (!said.exif) said.exif = exif_orientation(segment);
  } else if (cut_prefix(segment, std::string_view("http://ns.adobe.com/xap/1.0/\0", 29))) {
    if (!said.xmp) said.xmp = xmp_orientation(chars_of(segment));
  }
}

/// What hexadecimal digits stand for, up to the first that is none; ends of lines are passed over.
std::vector<std::byte> from_digits(std::string_view digits) {
  std::vector<std::byte> bytes;
  bool first = true;
  for (const char c : digits) {
    if (c == '\n') continue;
    unsigned value = 0;
    if (std::from_chars(&c, &c + 1, value, 16).ec != std::errc{}) break;
    if (first) {
      bytes.push_back(static_cast<std::byte>(value << 4));
    } else {
      bytes.back() |= static_cast<std::byte>(value);
    }
    first = !first;
  }
  return bytes;
}

/// The orientation is among the first things in a profile: more of it is not unpacked.
constexpr std::size_t kMostUnpacked = std::size_t{1} << 16;

std::string unpacked(Bytes packed) {
  std::string text(kMostUnpacked, '\0');
  uLongf size = text.size();
  const int result = uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (result != Z_OK && result != Z_BUF_ERROR) return {};
  text.resize(std::min<std::size_t>(size, text.size()));
  return text;
}

/// Cuts what comes before the next zero, and that.
std::string_view cut_word(Bytes& chunk) {
  const std::string_view all = chars_of(chunk);
  const std::size_t end = std::min(all.find('\0'), all.size());
  chunk = chunk.subspan(std::min(end + 1, all.size()));
  return all.substr(0, end);
}

/// What `chunk`, a text behind its keyword, says.
std::string text_of(std::string_view kind, Bytes chunk) {
  bool packed = kind == "zTXt";
  if (kind == "iTXt") {
    packed = !chunk.empty() && chunk[0] != std::byte{0};
    chunk = chunk.subspan(std::min<std::size_t>(2, chunk.size()));
    cut_word(chunk);
    cut_word(chunk);
  } else if (packed) {
    chunk = chunk.subspan(std::min<std::size_t>(1, chunk.size()));
  }
  return packed ? unpacked(chunk) : std::string(chars_of(chunk));
}

std::optional<unsigned> profile_orientation(std::string_view text) {
  std::size_t at = 0;  // of the digits: behind three ends of lines
  for (int lines = 0; lines < 3; ++lines) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  return exif_orientation(from_digits(text.substr(at)));
}

/// `profile` gets what stands in text and would be EXIF: it counts where there is none.
void read_text(std::string_view kind, Bytes chunk, Said& said, Said& profile) {
  const std::string_view keyword = cut_word(chunk);
  if (keyword == "XML:com.adobe.xmp" && !said.xmp) said.xmp = xmp_orientation(text_of(kind, chunk));
  if (keyword == "Raw profile type exif" && !profile.exif) {
    profile.exif = profile_orientation(text_of(kind, chunk));
  }
}

}  // namespace

std::optional<unsigned> exif_orientation(std::span<const std::byte> exif) {
  while (cut_prefix(exif, std::string_view("Exif\0\0", 6))) {
  }
  const bool big_endian = chars_of(exif).starts_with(std::string_view("MM\0*", 4));
  if (!big_endian && !chars_of(exif).starts_with(std::string_view("II*\0", 4))) return {};
  const auto offset = piece(exif, 4, 4);
  if (!offset) return {};
  std::uint64_t at = number(*offset, big_endian);
  const auto count = piece(exif, at, 2);
  if (!count) return {};
  at += 2;
  for (std::uint32_t left = number(*count, big_endian); left > 0; --left, at += kEntryBytes) {
    const auto entry = piece(exif, at, kEntryBytes);
    if (!entry) return {};
    if (number(entry->first(2), big_endian) != kOrientationTag) continue;
    const auto value = whole_number(exif, *entry, big_endian);
    if (value) return valid(*value);
  }
  return {};
}

std::optional<unsigned> xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at)) {
    at += kName.size();
    const std::string_view rest = xmp.substr(at);
    const std::size_t digit = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (digit == 0 || rest.size() <= digit || rest[digit] < '0' || rest[digit] > '9') continue;
    return valid(static_cast<unsigned>(rest[digit] - '0'));
  }
  return {};
}

unsigned orientation_of(std::span<const std::byte> exif, std::string_view xmp) {
  return Said{exif_orientation(exif), xmp_orientation(xmp)}.orientation();
}

unsigned jpeg_orientation(std::span<const std::byte> file) {
  Said said;
  std::uint64_t at = 2;
  while (at + 4 <= file.size()) {
    // What stands between segments is passed over, as libjpeg does.
    if (file[at] != std::byte{0xff} || file[at + 1] == std::byte{0xff}) {
      ++at;
      continue;
    }
    const auto marker = std::to_integer<unsigned>(file[at + 1]);
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    at += 2;
    if (marker == 0 || stands_alone(marker)) continue;
    const std::uint32_t length = number(file.subspan(at, 2), true);
    const auto segment = length < 2 ? std::nullopt : piece(file, at + 2, length - 2);
    if (!segment) break;
    if (marker == kApp1) read_app1(*segment, said);
    at += length;
  }
  return said.orientation();
}

unsigned png_orientation(std::span<const std::byte> file) {
  constexpr std::uint64_t kAround = 12;  // length and name before, a checksum behind
  Said said, profile;
  std::uint64_t at = 8;
  while (const auto head = piece(file, at, 8)) {
    const std::uint32_t length = number(head->first(4), true);
    const std::string_view name = chars_of(head->subspan(4));
    const auto whole = piece(file, at, length + kAround);
    if (!whole || name == "IEND") break;
    at += whole->size();
    const bool text = name == "tEXt" || name == "zTXt" || name == "iTXt";
    if (name != "eXIf" && !text) continue;
    const auto* checked = reinterpret_cast<const Bytef*>(whole->data() + 4);
    if (number(whole->last(4), true) != crc32_z(0, checked, std::size_t{length} + 4)) continue;
    const Bytes chunk = whole->subspan(8, length);
    if (text) read_text(name, chunk, said, profile);
    if (name == "eXIf" && !said.exif) said.exif = exif_orientation(chunk);
  }
  if (!said.exif) said.exif = profile.exif;
  return said.orientation();
}

}  // namespace forebay
