#include "format/codec/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

constexpr std::array<unsigned char, 3> kJpegStart{0xff, 0xd8, 0xff};
constexpr std::array<unsigned char, 8> kPngStart{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool starts_with(std::span<const std::byte> file, std::span<const unsigned char> magic) {
  return file.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

[[noreturn]] void throw_not_an_image() {
  throw Error(ErrorKind::corrupt, "the bytes are neither a JPEG nor a PNG file",
              "check how the data set was packed");
}

}  // namespace

std::string to_string(const ImageShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

ImageFormat image_format(std::span<const std::byte> file) {
  if (starts_with(file, kJpegStart)) return ImageFormat::jpeg;
  if (starts_with(file, kPngStart)) return ImageFormat::png;
  return ImageFormat::none;
}

std::span<std::byte> room_in(Spare& spare, std::size_t bytes) {
  if (spare.size() < bytes) spare.resize(bytes);
  return std::span(spare).first(bytes);
}

std::unique_ptr<ImageReader> open_image(std::span<const std::byte> file) {
  std::unique_ptr<ImageReader> reader;
  switch (image_format(file)) {
    case ImageFormat::jpeg:
      reader = open_jpeg(file);
      break;
    case ImageFormat::png:
      reader = open_png(file);
      break;
    case ImageFormat::none:
      throw_not_an_image();
  }
  check_image_shape(reader->shape(), nullptr);
  return reader;
}

ImageShape image_shape(std::span<const std::byte> file) { return open_image(file)->shape(); }

void decode_image(std::span<const std::byte> file, const ImageShape& shape,
                  std::span<std::byte> pixels) {
  if (pixels.size() != shape.bytes()) {
    throw Error(ErrorKind::usage, fmt::format("a buffer of {} bytes cannot hold an image of {}",
                                              pixels.size(), to_string(shape)));
  }
  const auto reader = open_image(file);
  check_image_shape(reader->shape(), &shape);
  reader->read_planes(pixels);
}

void check_image_shape(const ImageShape& found, const ImageShape* expected) {
  if (found.bytes() == 0 || found.bytes() > kMaxImageBytes) {
    throw Error(ErrorKind::corrupt,
                fmt::format("an image of {} pixels is outside the limits of 1 to {} bytes",
                            to_string(found), kMaxImageBytes),
                "scale the images down before packing them");
  }
  if (expected != nullptr && found != *expected) {
    throw Error(ErrorKind::corrupt,
                fmt::format("the image is {} but the data set's images are {}", to_string(found),
                            to_string(*expected)),
                "pack images of one size, for example with 'forebay pack --shape'");
  }
}

void check_encodable(const ImageShape& shape, std::span<const std::byte> pixels) {
  const bool channels_fit = shape.channels == 1 || shape.channels == 3;
  if (!channels_fit || shape.bytes() == 0 || shape.bytes() != pixels.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes of shape {} cannot be written as an image", pixels.size(),
                            to_string(shape)),
                "JPEG and PNG take 1 or 3 channels of bytes");
  }
}

void split_row(std::span<const std::byte> row, const ImageShape& shape, std::uint32_t y,
               std::span<std::byte> pixels) {
  const std::size_t plane = std::size_t{shape.height} * shape.width;
  for (std::size_t c = 0; c < shape.channels; ++c) {
    std::byte* out = pixels.data() + c * plane + std::size_t{y} * shape.width;
    const std::byte* in = row.data() + c;
    for (std::size_t x = 0; x < shape.width; ++x) out[x] = in[x * shape.channels];
  }
}

void join_row(std::span<const std::byte> pixels, const ImageShape& shape, std::uint32_t y,
              std::span<std::byte> row) {
  const std::size_t plane = std::size_t{shape.height} * shape.width;
  for (std::size_t c = 0; c < shape.channels; ++c) {
    const std::byte* in = pixels.data() + c * plane + std::size_t{y} * shape.width;
    std::byte* out = row.data() + c;
    for (std::size_t x = 0; x < shape.width; ++x) out[x * shape.channels] = in[x];
  }
}

}  // namespace forebay
