// JPEG and PNG files in memory <-> pixels in (channel, height, width) order, one byte each.
//
// Gray images have one channel, all others three, in the order red, green, blue. Transparency is
// dropped, 16-bit samples keep their upper byte, palettes are looked up; color profiles and gamma
// are ignored, as the image readers of training frameworks do. A file whose pixels are not all
// there is corrupt: it is never completed with gray.
//
// All functions are local, keep no state, and are safe to call from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forebay {

struct ImageShape {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  std::uint64_t bytes() const { return std::uint64_t{channels} * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// "3x32x32"
std::string to_string(const ImageShape& shape);

/// No image may decode to more bytes than this, whatever its header says: a file of a few hundred
/// bytes can claim terabytes of pixels.
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 29;

enum class ImageFormat : std::uint8_t { none, jpeg, png };

/// What the first bytes say; no more is looked at.
ImageFormat image_format(std::span<const std::byte> file);

/// Reads the header only. Throws corrupt, unsupported.
ImageShape image_shape(std::span<const std::byte> file);

/// Decodes into `pixels`, which has exactly shape.bytes() bytes. Throws corrupt when the file does
/// not decode or has another shape (the message states both), unsupported for CMYK.
void decode_image(std::span<const std::byte> file, const ImageShape& shape,
                  std::span<std::byte> pixels);

/// `pixels` has exactly shape.bytes() bytes and 1 or 3 channels. Throws usage otherwise.
std::vector<std::byte> encode_jpeg(const ImageShape& shape, std::span<const std::byte> pixels,
                                   int quality);
std::vector<std::byte> encode_png(const ImageShape& shape, std::span<const std::byte> pixels);

// Bringing images to one shape before they are packed.
//
// Every output pixel is the average of the input area that it covers; where the image grows, the
// area is smaller than a pixel and values are interpolated linearly. Gray becomes color by
// repeating its channel, color becomes gray by the usual weights of the eye (0.299, 0.587, 0.114).
// Integer arithmetic only: the same result on every platform.

/// An image that owns its pixels, in (channel, height, width) order.
struct Image {
  ImageShape shape;
  std::vector<std::byte> pixels;
};

/// A JPEG or PNG file as an image. Throws corrupt, unsupported.
Image decode_image(std::span<const std::byte> file);

/// `image` in `shape`. Throws usage when the channels are neither equal nor 1 and 3.
Image resize(Image image, const ImageShape& shape);

}  // namespace forebay
