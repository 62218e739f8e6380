// Images that are worked on: channel values of a pixel side by side, bytes or floats.
//
//   row y:  r g b r g b r g b ...        `stride` bytes from row to row
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "forebay/dataset.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {

/// Some memory seen as an image. Does not own it.
struct PixelView {
  ImageShape shape;
  bool floats = false;
  std::byte* data = nullptr;
  std::size_t stride = 0;

  std::size_t pixel_bytes() const { return shape.channels * (floats ? sizeof(float) : 1); }
  template <typename T>
  T* row(std::size_t y) const {
    return reinterpret_cast<T*>(data + y * stride);
  }
  PixelView part(const Box& box) const;
};

/// An image without gaps in `memory`, which grows if need be.
PixelView image_in(Spare& memory, const ImageShape& shape, bool floats);

// `to` and `from` have the sizes that these names imply, and do not overlap.

void copy_pixels(const PixelView& from, const PixelView& to);
/// Zeros around `from`, which comes to lie `by` pixels from each side of `to`.
void pad_pixels(const PixelView& from, std::uint32_t by, const PixelView& to);
/// Three channels to one.
void make_gray(const PixelView& from, const PixelView& to);
/// One channel to three.
void make_color(const PixelView& from, const PixelView& to);
/// Bytes to floats.
void make_floats(const PixelView& from, const PixelView& to);
/// Floats to bytes, rounded and limited.
void make_bytes(const PixelView& from, const PixelView& to);

/// To the nearest whole number, ties to even, within the range of T; NaN becomes 0.
template <typename T>
T rounded_to(float value) {
  // The limits of long types are not floats: what is not below them is at them.
  constexpr T kLeast = std::numeric_limits<T>::lowest(), kMost = std::numeric_limits<T>::max();
  const float whole = std::nearbyint(value);
  if (whole >= static_cast<float>(kMost)) return kMost;
  if (whole <= static_cast<float>(kLeast)) return kLeast;
  return whole == whole ? static_cast<T>(whole) : T{0};
}

/// Calls work(T{}), T being the type of numbers; not for f16, which none is.
template <typename Work>
void with_number(ElementType type, Work&& work) {
  switch (type) {
    case ElementType::u8:
      return work(std::uint8_t{});
    case ElementType::i8:
      return work(std::int8_t{});
    case ElementType::u16:
      return work(std::uint16_t{});
    case ElementType::i16:
      return work(std::int16_t{});
    case ElementType::u32:
      return work(std::uint32_t{});
    case ElementType::i32:
      return work(std::int32_t{});
    case ElementType::u64:
      return work(std::uint64_t{});
    case ElementType::i64:
      return work(std::int64_t{});
    case ElementType::f32:
      return work(float{});
    case ElementType::f64:
      return work(double{});
    case ElementType::f16:
      break;
  }
}

// In place.

void swap_red_and_blue(const PixelView& image);
void mirror(const PixelView& image);
void turn_upside_down(const PixelView& image);

/// An array of numbers of `type` in channel, height, width order (or height, width, channel): the
/// part `box` of it, as bytes if `type` is u8, else as floats.
struct StoredPixels {
  std::span<const std::byte> bytes;
  ImageShape shape;
  ElementType type = ElementType::u8;
  bool hwc = false;
};
/// Throws usage for types that are not read exactly, or nearly so, as floats.
void require_image_type(ElementType type);
void load_pixels(const StoredPixels& from, const Box& box, const PixelView& to);

}  // namespace forebay
