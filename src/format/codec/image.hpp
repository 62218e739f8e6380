// Image files in memory <-> pixels in (channel, height, width) order.
//
// An image is read as it is meant: upright, gray with one channel or in red, green, blue, with a
// channel of transparency behind that where the file has some, and in numbers as wide as the
// file's. What may be wanted otherwise is an ImageChoices; docs/decoding.md has a table of what
// each kind of file becomes. Color profiles and gamma are ignored, as the image readers of training
// frameworks do. A file whose pixels are not all there is corrupt: it is never completed with gray.
//
// All functions are local, keep no state, and are safe to call from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/dataset.hpp"

namespace forebay {

struct ImageShape {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  ElementType type = ElementType::u8;
  bool bits = false;  ///< single bits: yes and no, 1 and 0, where others have 255 and 0

  std::uint64_t bytes() const { return std::uint64_t{channels} * height * width * size_of(type); }
  bool operator==(const ImageShape&) const = default;
};

/// "3x32x32", "u16 1x32x32", "1-bit 1x32x32"
std::string to_string(const ImageShape& shape);

/// No image may decode to more bytes than this, whatever its header says: a file of a few hundred
/// bytes can claim terabytes of pixels.
inline constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 29;

enum class ImageFormat : std::uint8_t { none, jpeg, png, webp, tiff, gif, bmp };

/// What the first bytes say; no more is looked at.
ImageFormat image_format(std::span<const std::byte> file);

/// Which channels an image shall have.
enum class ImageChannels : std::uint8_t {
  stored,  ///< those of the file
  opaque,  ///< those of the file, without transparency
  gray,
  rgb,
  rgba,  ///< opaque where the file says nothing of it
};

/// What may be chosen about the meaning of an image file. Words of the text form of a codec
/// (forebay/dataset.hpp) and of a transform: orientation=stored, palette=index, gray, rgb, rgba.
struct ImageChoices {
  bool upright = true;   ///< turned as its EXIF orientation says
  bool indices = false;  ///< of a palette the numbers, not the colors
  ImageChannels channels = ImageChannels::stored;
  bool wide_bits =
      false;  ///< single bits are 255 and 0; no word: a step of a transform asks for it

  bool operator==(const ImageChoices&) const = default;

  /// Takes `word` up; false where it is none of them. Throws usage where it contradicts another.
  bool read(std::string_view word);
  /// The words, each behind a ':'.
  std::string text() const;
  /// These, and what `others` say beyond.
  ImageChoices with(const ImageChoices& others) const;
};

/// Throws corrupt where one is of single bits and the other is not: 1 would mean two things.
void require_same_bits(const ImageShape& found, const ImageShape& expected);
/// The same, and where numbers are of another type, or channels are not as many.
void require_same_kind(const ImageShape& found, const ImageShape& expected);

/// Reads the header only. Throws corrupt, unsupported.
ImageShape image_shape(std::span<const std::byte> file, const ImageChoices& choices = {});

/// Whether decode_image() turns it, as its EXIF orientation says. Likewise.
bool is_turned(std::span<const std::byte> file, const ImageChoices& choices = {});

/// Decodes into `pixels`, which has exactly shape.bytes() bytes. Throws corrupt when the file does
/// not decode or has another shape (the message states both), unsupported for kinds of images that
/// are not read.
void decode_image(std::span<const std::byte> file, const ImageShape& shape,
                  std::span<std::byte> pixels, const ImageChoices& choices = {});

/// `pixels` has exactly shape.bytes() bytes: of JPEG, u8 of 1 or 3 channels; of PNG, u8 or u16 of 1
/// to 4, or single bits. Throws usage otherwise.
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
  bool classes = false;  ///< numbers of classes, or yes and no: not to be averaged or rounded
};

/// An image file as an image. Throws corrupt, unsupported.
Image decode_image(std::span<const std::byte> file, const ImageChoices& choices = {});

/// `image` in `shape`, whose type stays what it is: u8 or u16. Throws usage for other types, for
/// images of classes, and when the channels are neither equal nor 1 and 3.
Image resize(Image image, const ImageShape& shape);

}  // namespace forebay
