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

}  // namespace forebay::test
