#include <algorithm>
#include <cstring>

#include "format/codec/image_reader.hpp"

namespace forebay {

bool Palette::is_gray() const {
  for (std::size_t i = 0; i < size; ++i) {
    const auto own = static_cast<std::byte>(i);
    if (colors[i][0] != own || colors[i][1] != own || colors[i][2] != own) return false;
  }
  return true;
}

void unpack_numbers(const std::byte* packed, unsigned bits, std::span<std::byte> out) {
  const std::size_t in_byte = 8 / bits, mask = (1U << bits) - 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t shift = (in_byte - 1 - i % in_byte) * bits;
    const std::size_t number = std::to_integer<std::size_t>(packed[i / in_byte]) >> shift & mask;
    out[i] = static_cast<std::byte>(number);
  }
}

ImageShape PaletteReader::shape() const {
  ImageShape shape{1, height_, width_};
  shape.bits = bits_ && !indices_;
  if (indices_ || bits_) return shape;
  shape.channels = (palette_.is_gray() ? 1U : 3U) + (palette_.transparent ? 1U : 0U);
  return shape;
}

void PaletteReader::read(const Box& part, unsigned, std::span<std::byte> pixels, Spare& spare) {
  const auto numbers = room_in(spare, std::size_t{height_} * width_);
  read_indices(numbers);
  const std::size_t channels = shape().channels, colors = channels >= 3 ? 3 : 1;
  const bool looks_up = !indices_ && !bits_;
  std::byte* out = pixels.data();
  for (std::size_t y = 0; y < part.height; ++y) {
    const std::byte* in = numbers.data() + (part.y + y) * width_ + part.x;
    for (std::size_t x = 0; x < part.width; ++x, out += channels) {
      const auto& color = palette_.colors[std::to_integer<std::size_t>(in[x])];
      std::copy_n(looks_up ? color.data() : in + x, colors, out);
      if (channels > colors) out[colors] = color[3];
    }
  }
}

}  // namespace forebay
