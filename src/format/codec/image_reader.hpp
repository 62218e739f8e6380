// An image file that is open, of which a part may be decoded.
//
//   open_image(file, choices) --shape()--> what to ask for --read(part, pixels)--> mixed channels
//
// A library's own reader gives what the file has; where that is to be turned, or has other channels
// than are wanted, another one stands before it.
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

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  /// How the image has to be turned to stand upright, as EXIF numbers it: 1 (not at all) to 8.
  virtual unsigned orientation() const { return 1; }
  /// Whether pixels are numbers of classes: those of a palette, or single bits.
  virtual bool classes() const { return false; }
  /// The largest of 1, 2, 4 and 8 that read() takes.
  virtual unsigned most_shrink() const { return 1; }
  /// `part` of the image shrunk by `shrink`, row after row, channel values of a pixel side by side:
  /// into `pixels` of exactly that size. `spare` is memory to work in. Throws corrupt.
  virtual void read(const Box& part, unsigned shrink, std::span<std::byte> pixels,
                    Spare& spare) = 0;
  /// The whole image in (channel, height, width) order, into exactly shape().bytes() bytes. Instead
  /// of read(). Throws corrupt.
  virtual void read_planes(std::span<std::byte> pixels);
};

using ImageReaderPtr = std::unique_ptr<ImageReader>;

/// The reader of a file that can only be decoded whole: parts are cut out of that.
class WholeReader : public ImageReader {
 public:
  void read(const Box& part, unsigned shrink, std::span<std::byte> pixels, Spare& spare) final;

 protected:
  /// Into exactly shape().bytes() bytes, as read(). Throws corrupt.
  virtual void read_image(std::span<std::byte> image) = 0;
};

/// Reads the header. Throws corrupt, unsupported.
ImageReaderPtr open_image(std::span<const std::byte> file, const ImageChoices& choices = {});

/// The side of an image that is shrunk: a part of a pixel counts as one.
constexpr std::uint32_t shrunk(std::uint32_t side, unsigned shrink) {
  return static_cast<std::uint32_t>((std::uint64_t{side} + shrink - 1) / shrink);
}

// The image libraries behind image.hpp, each in a file of its own. Those that report errors by
// longjmp hold nothing that has a destructor in the functions that are jumped into.

/// All read the header; `indices` as in ImageChoices. Throw corrupt, unsupported. Those of
/// libraries that were not there when this was built do not exist.
ImageReaderPtr open_jpeg(std::span<const std::byte> file, bool indices);
ImageReaderPtr open_png(std::span<const std::byte> file, bool indices);
ImageReaderPtr open_webp(std::span<const std::byte> file, bool indices);
ImageReaderPtr open_tiff(std::span<const std::byte> file, bool indices);
ImageReaderPtr open_gif(std::span<const std::byte> file, bool indices);
ImageReaderPtr open_bmp(std::span<const std::byte> file, bool indices);

/// `reader`, turned upright if its image does not stand so and `choices` ask for that, and with the
/// channels that they ask for. Throws unsupported.
ImageReaderPtr adapt(ImageReaderPtr reader, const ImageChoices& choices);

/// What the numbers of an image stand for.
struct Palette {
  std::array<std::array<std::byte, 4>, 256> colors{};  ///< red, green, blue, opacity
  std::size_t size = 0;
  bool transparent = false;  ///< opacities are to be looked at

  /// Whether each number is the gray that it stands for.
  bool is_gray() const;
};

/// The reader of a file whose pixels are numbers of a palette's colors.
class PaletteReader : public ImageReader {
 public:
  ImageShape shape() const override;
  bool classes() const override { return indices_ || bits_; }
  void read(const Box& part, unsigned shrink, std::span<std::byte> pixels, Spare& spare) override;

 protected:
  explicit PaletteReader(bool indices) : indices_(indices) {}
  /// Into exactly height_ * width_ bytes. Throws corrupt.
  virtual void read_indices(std::span<std::byte> numbers) = 0;

  std::uint32_t height_ = 0, width_ = 0;
  Palette palette_;
  bool indices_;
  bool bits_ = false;  ///< black and white: numbers are yes and no
};

/// Numbers of 1, 2, 4 or 8 bits side by side, the first in the high bits, as one of `out` each.
void unpack_numbers(const std::byte* packed, unsigned bits, std::span<std::byte> out);

/// Cuts `part` out of `image` of mixed channels and of `shape`.
void copy_part(std::span<const std::byte> image, const ImageShape& shape, const Box& part,
               std::span<std::byte> pixels);

// What is said of an image's orientation beside its pixels. What is damaged or too short says
// nothing, as does a number that is none of 1 to 8.

/// In an EXIF block, which is a TIFF file without an image and may have "Exif" in front; nothing
/// where it has no such tag.
std::optional<unsigned> exif_orientation(std::span<const std::byte> exif);
/// In the text of an XMP block.
std::optional<unsigned> xmp_orientation(std::string_view xmp);
/// Of both: EXIF goes before XMP; 1 where neither says it.
unsigned orientation_of(std::span<const std::byte> exif, std::string_view xmp);
/// In the segments of a JPEG file and the chunks of a PNG file, likewise.
unsigned jpeg_orientation(std::span<const std::byte> file);
unsigned png_orientation(std::span<const std::byte> file);

/// Throws unsupported: `which` ("TIFF images of 12 bits") are not read.
[[noreturn]] void throw_unread(const std::string& which);

/// Throws corrupt unless the header's shape is within the limits, and equal to `expected` if given.
void check_image_shape(const ImageShape& found, const ImageShape* expected);

/// Throws usage unless `pixels` has that shape, and `fits` what is written.
void check_encodable(const ImageShape& shape, std::span<const std::byte> pixels, bool fits,
                     std::string_view takes);

/// In place, four inks of each pixel to three colors; `none` is what an ink is where there is none
/// of it, 0 or 255.
void make_rgb(std::span<std::byte> inks, unsigned none);

/// One row of interleaved pixels <-> row `y` of an image in (channel, height, width) order.
void split_row(std::span<const std::byte> row, const ImageShape& shape, std::uint32_t y,
               std::span<std::byte> pixels);
void join_row(std::span<const std::byte> pixels, const ImageShape& shape, std::uint32_t y,
              std::span<std::byte> row);

}  // namespace forebay
