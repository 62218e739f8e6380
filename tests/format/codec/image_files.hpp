// Image files that encode_png() and encode_jpeg() do not write: what is said beside the pixels, few
// bits, palettes.
#pragma once

#include <zlib.h>

#include <cstdint>

#include "tests/format/codec/fixture.hpp"

namespace forebay::test {

/// `value` in `size` bytes.
inline std::string number_text(std::uint64_t value, std::size_t size, bool big_endian) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    text[big_endian ? size - 1 - i : i] = static_cast<char>(value >> (8 * i));
  }
  return text;
}

/// A TIFF directory with the orientation behind one other entry.
inline std::string exif_text(std::uint64_t orientation, bool big_endian, std::uint64_t type = 3) {
  const auto number = [&](std::uint64_t value, std::size_t size) {
    return number_text(value, size, big_endian);
  };
  std::string text = big_endian ? std::string("MM\0*", 4) : std::string("II*\0", 4);
  text += number(8, 4) + number(2, 2);
  text += number(0x0100, 2) + number(4, 2) + number(1, 4) + number(640, 4);
  const std::size_t size = type == 3 ? 2 : 4;
  text += number(0x0112, 2) + number(type, 2) + number(1, 4) + number(orientation, size);
  return text + std::string(4 - size, '\0') + number(0, 4);
}

inline std::string xmp_text(char orientation) {
  return std::string("<rdf:Description tiff:Orientation=\"") + orientation + "\"/>";
}

/// A JPEG file with an APP1 segment of `content` behind its start.
inline Bytes with_app1(const Bytes& jpeg, const std::string& content) {
  const auto segment = to_bytes("\xff\xe1" + number_text(content.size() + 2, 2, true) + content);
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  file.insert(file.end(), segment.begin(), segment.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

inline Bytes with_exif(const Bytes& jpeg, const std::string& tiff) {
  return with_app1(jpeg, std::string("Exif\0\0", 6) + tiff);
}

inline std::string chunk_text(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto* bytes = reinterpret_cast<const Bytef*>(body.data());
  return number_text(data.size(), 4, true) + body +
         number_text(crc32_z(0, bytes, body.size()), 4, true);
}

constexpr std::size_t kPngEnd = 12;  // IEND with its length and checksum

/// A PNG file with a chunk before its end, behind its pixels.
inline Bytes with_chunk(const Bytes& png, const std::string& name, const std::string& data) {
  const auto chunk = to_bytes(chunk_text(name, data));
  const auto end = static_cast<std::ptrdiff_t>(png.size() - kPngEnd);
  Bytes file(png.begin(), png.begin() + end);
  file.insert(file.end(), chunk.begin(), chunk.end());
  file.insert(file.end(), png.begin() + end, png.end());
  return file;
}

struct PngKind {
  std::uint32_t width = 0, height = 0;
  unsigned bits = 8;
  unsigned color = 0;  ///< 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  std::string chunks;  ///< before the pixels
  std::string rows;    ///< as they lie in the file, without the filter's byte
};

inline Bytes png_of(const PngKind& kind) {
  std::string header = number_text(kind.width, 4, true) + number_text(kind.height, 4, true);
  header += static_cast<char>(kind.bits);
  header += static_cast<char>(kind.color);
  header += std::string(3, '\0');
  const std::size_t stride = kind.rows.size() / kind.height;
  std::string raw;
  for (std::size_t y = 0; y < kind.height; ++y) raw += '\0' + kind.rows.substr(y * stride, stride);
  std::string packed(compressBound(raw.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(size);
  return to_bytes("\x89PNG\r\n\x1a\n" + chunk_text("IHDR", header) + kind.chunks +
                  chunk_text("IDAT", packed) + chunk_text("IEND", ""));
}

// Images of two rows of four pixels that Pillow has written, as hexadecimal text.

/// Numbers 0 to 3 twice, of the colors 000000 800000 008000 070809; number 2 is transparent.
inline constexpr const char* kGif =
    "4749463839610400020081000000000080000000800007080921f90401000002002c00000000040002000008090001"
    "0410"
    "304020c180003b";
/// Pixel i is (32 i, 32 i + 8, 32 i + 16, 32 i + 24); orientation 6 behind it.
inline constexpr const char* kWebp =
    "524946466400000057454250565038580a000000180000000300000100005650384c240000002f034000103f20164c"
    "de61"
    "e4cf19c4801c02e4182009fd100890b1052d5ab488e87f6003455849461a0000004d4d002a00000008000101120003"
    "0000"
    "00010006000000000000";
/// Pixel i is (30 i, 30 i + 10, 30 i + 20); orientation 6.
inline constexpr const char* kTiff =
    "49492a00080000000b0000010400010000000400000001010400010000000200000002010300030000009200000003"
    "01"
    "0300010000000100000006010300010000000200000011010400010000009800000012010300010000000600000015"
    "01"
    "030001000000030000001601040001000000020000001701040001000000180000001c010300010000000100000000"
    "00"
    "0000080008000800000a141e28323c46505a646e78828c96a0aab4bec8d2dce6";
/// Pixel i is 9001 i modulo 2^16, by LZW.
inline constexpr const char* kDeepTiff =
    "49492a001e000000800000029119488c7b34a9118cd57bd9a41f7b4040000900000103000100000004000000010103"
    "00"
    "0100000002000000020103000100000010000000030103000100000005000000060103000100000001000000110104"
    "00"
    "01000000080000001601030001000000020000001701040001000000150000001c0103000100000001000000000000"
    "00";
/// As kGif, none transparent.
inline constexpr const char* kBmp =
    "424d4e0000000000000046000000280000000400000002000000010008000000000008000000c40e0000c40e000004"
    "00"
    "000004000000000000000000800000800000090807000001020300010203";

inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 2 <= text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace forebay::test
