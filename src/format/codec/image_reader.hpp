// An image file that is open, of which a part may be decoded.
//
//   open_image(file) --shape()--> what to ask for --read(part, pixels)--> interleaved pixels
//
// A part is a rectangle of the image, which a JPEG file may be asked for at 1/2, 1/4 or 1/8 of its
// size: pixel (x, y) of the small image stands for the square of `shrink` pixels from
// (x * shrink, y * shrink) on. Rows above a part are only parsed, those below not looked at, and
// columns beside it are not transformed: its pixels are exactly those of the whole image. So damage
// below a part is not found.
//
// Belongs to one thread; the file's bytes must outlive it. One call of read() or read_planes() may
// be made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/codec/image.hpp"

namespace forebay {

/// A rectangle of pixels.
struct Box {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  std::uint64_t pixels() const { return std::uint64_t{width} * height; }
  bool operator==(const Box&) const = default;
};

/// Memory that is used again: it grows and does not shrink.
using Spare = std::vector<std::byte>;
/// The first `bytes` of it, whatever they are.
std::span<std::byte> room_in(Spare& spare, std::size_t bytes);

class ImageReader {
 public:
  virtual ~ImageReader() = default;

  /// Of the whole image at its full size.
  virtual ImageShape shape() const = 0;
  /// The largest of 1, 2, 4 and 8 that read() takes.
  virtual unsigned most_shrink() const { return 1; }
  /// `part` of the image shrunk by `shrink`, row after row, channel values of a pixel side by side:
  /// into `pixels` of exactly that size. `spare` is memory to work in. Throws corrupt.
  virtual void read(const Box& part, unsigned shrink, std::span<std::byte> pixels,
                    Spare& spare) = 0;
  /// The whole image in (channel, height, width) order, into exactly shape().bytes() bytes. Instead
  /// of read(). Throws corrupt.
  virtual void read_planes(std::span<std::byte> pixels) = 0;
};

/// Reads the header. Throws corrupt, unsupported.
std::unique_ptr<ImageReader> open_image(std::span<const std::byte> file);

/// The side of an image that is shrunk: a part of a pixel counts as one.
constexpr std::uint32_t shrunk(std::uint32_t side, unsigned shrink) {
  return static_cast<std::uint32_t>((std::uint64_t{side} + shrink - 1) / shrink);
}

// The two image libraries behind image.hpp. Each reports errors by longjmp, so each lives in a file
// of its own whose jumping functions hold nothing that has a destructor.

/// Both read the header. Throw corrupt, unsupported.
std::unique_ptr<ImageReader> open_jpeg(std::span<const std::byte> file);
std::unique_ptr<ImageReader> open_png(std::span<const std::byte> file);

/// Throws corrupt unless the header's shape is within the limits, and equal to `expected` if given.
void check_image_shape(const ImageShape& found, const ImageShape* expected);

/// Throws usage unless `pixels` is an image of 1 or 3 channels and of that shape.
void check_encodable(const ImageShape& shape, std::span<const std::byte> pixels);

/// One row of interleaved pixels <-> row `y` of an image in (channel, height, width) order.
void split_row(std::span<const std::byte> row, const ImageShape& shape, std::uint32_t y,
               std::span<std::byte> pixels);
void join_row(std::span<const std::byte> pixels, const ImageShape& shape, std::uint32_t y,
              std::span<std::byte> row);

}  // namespace forebay
