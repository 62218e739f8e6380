// What the codec tests share: buffers, images and decoding in few words.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "forebay/dataset.hpp"
#include "format/codec/image.hpp"
#include "tests/support/error_from.hpp"

namespace forebay::test {

using Bytes = std::vector<std::byte>;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Bytes to_bytes(std::string_view text) {
  const auto span = bytes_of(text);
  return {span.begin(), span.end()};
}

/// An image whose neighbours differ in every direction.
inline Bytes gradient(const ImageShape& shape) {
  Bytes pixels(shape.bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::byte>((i * 7 + i / shape.width * 3) & 0xff);
  }
  return pixels;
}

/// One buffer a field, filled by decode().
struct Decoded {
  std::vector<Bytes> fields;

  template <typename T>
  T scalar(std::size_t field) const {
    T value;
    std::memcpy(&value, fields.at(field).data(), sizeof(value));
    return value;
  }
};

inline Decoded decode(const Codec& codec, std::span<const std::byte> value) {
  Decoded decoded;
  std::vector<std::span<std::byte>> spans;
  for (const Field& field : codec.schema().fields) decoded.fields.emplace_back(field.bytes());
  for (Bytes& field : decoded.fields) spans.emplace_back(field);
  codec.decode(value, spans);
  return decoded;
}

inline Decoded decode(const Codec& codec, std::string_view value) {
  return decode(codec, bytes_of(value));
}

inline std::shared_ptr<const Codec> codec_for(std::string_view value,
                                              const std::string& codec = "auto",
                                              const std::string& schema = "") {
  return make_codec({.codec = codec, .schema = schema}, bytes_of(value));
}

}  // namespace forebay::test
