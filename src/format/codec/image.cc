#include "format/codec/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

struct ChannelWord {
  std::string_view word;
  ImageChannels channels;
};
constexpr std::array<ChannelWord, 3> kChannelWords{
    {{"gray", ImageChannels::gray}, {"rgb", ImageChannels::rgb}, {"rgba", ImageChannels::rgba}}};

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

[[noreturn]] void throw_contradiction() {
  throw Error(ErrorKind::usage, "what is said of images contradicts itself",
              "give one of gray, rgb, rgba and palette=index");
}

}  // namespace

std::string to_string(const ImageShape& shape) {
  const std::string type =
      shape.type == ElementType::u8 ? "" : fmt::format("{} ", to_string(shape.type));
  return fmt::format("{}{}x{}x{}", type, shape.channels, shape.height, shape.width);
}

bool ImageChoices::read(std::string_view word) {
  const auto* const at = std::ranges::find(kChannelWords, word, &ChannelWord::word);
  const bool of_channels = at != kChannelWords.end();
  if (!of_channels && word != "orientation=stored" && word != "palette=index") return false;
  if (of_channels && channels != ImageChannels::stored) throw_contradiction();
  if (of_channels) channels = at->channels;
  if (word == "orientation=stored") upright = false;
  if (word == "palette=index") indices = true;
  if (indices && channels != ImageChannels::stored) throw_contradiction();
  return true;
}

std::string ImageChoices::text() const {
  std::string text;
  if (!upright) text += ":orientation=stored";
  if (indices) text += ":palette=index";
  const auto* const at = std::ranges::find(kChannelWords, channels, &ChannelWord::channels);
  if (at != kChannelWords.end()) text += fmt::format(":{}", at->word);
  return text;
}

ImageChoices ImageChoices::with(const ImageChoices& others) const {
  const ImageChoices both{
      .upright = upright && others.upright,
      .indices = indices || others.indices,
      .channels = channels == ImageChannels::stored ? others.channels : channels};
  if (both.indices && both.channels != ImageChannels::stored) throw_contradiction();
  return both;
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

void ImageReader::read_planes(std::span<std::byte> pixels) {
  const ImageShape whole = shape();
  std::vector<std::byte> image(whole.bytes());
  Spare spare;
  read({0, 0, whole.width, whole.height}, 1, image, spare);
  const std::size_t stride = image.size() / whole.height;
  for (std::uint32_t y = 0; y < whole.height; ++y) {
    split_row(std::span(image).subspan(y * stride, stride), whole, y, pixels);
  }
}

ImageReaderPtr open_image(std::span<const std::byte> file, const ImageChoices& choices) {
  ImageReaderPtr reader;
  switch (image_format(file)) {
    case ImageFormat::jpeg:
      reader = open_jpeg(file);
      break;
    case ImageFormat::png:
      reader = open_png(file, choices.indices);
      break;
    case ImageFormat::none:
      throw_not_an_image();
  }
  check_image_shape(reader->shape(), nullptr);
  reader = adapt(std::move(reader), choices);
  check_image_shape(reader->shape(), nullptr);
  return reader;
}

ImageShape image_shape(std::span<const std::byte> file, const ImageChoices& choices) {
  return open_image(file, choices)->shape();
}

void decode_image(std::span<const std::byte> file, const ImageShape& shape,
                  std::span<std::byte> pixels, const ImageChoices& choices) {
  if (pixels.size() != shape.bytes()) {
    throw Error(ErrorKind::usage, fmt::format("a buffer of {} bytes cannot hold an image of {}",
                                              pixels.size(), to_string(shape)));
  }
  const auto reader = open_image(file, choices);
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
    const bool sides = found.height != expected->height || found.width != expected->width;
    throw Error(ErrorKind::corrupt,
                fmt::format("the image is {} but the data set's images are {}", to_string(found),
                            to_string(*expected)),
                sides ? "pack images of one size, for example with 'forebay pack --shape'"
                      : "say which channels all shall have, for example with --codec auto:rgb");
  }
}

void check_encodable(const ImageShape& shape, std::span<const std::byte> pixels, bool fits,
                     std::string_view takes) {
  if (fits && shape.bytes() != 0 && shape.bytes() == pixels.size()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} bytes of shape {} cannot be written as an image", pixels.size(),
                          to_string(shape)),
              std::string(takes));
}

void copy_part(std::span<const std::byte> image, const ImageShape& shape, const Box& part,
               std::span<std::byte> pixels) {
  const std::size_t pixel = shape.channels * size_of(shape.type);
  const std::size_t from = shape.width * pixel, to = part.width * pixel;
  const std::byte* begin = image.data() + part.y * from + part.x * pixel;
  for (std::size_t y = 0; y < part.height; ++y) {
    std::memcpy(pixels.data() + y * to, begin + y * from, to);
  }
}

namespace {

// One row of a plane has numbers side by side, a row of mixed channels one in `channels`.

template <typename T>
void split_numbers(const std::byte* row, std::size_t channels, std::size_t width, std::byte* out) {
  for (std::size_t x = 0; x < width; ++x) {
    std::memcpy(out + x * sizeof(T), row + x * channels * sizeof(T), sizeof(T));
  }
}

template <typename T>
void join_numbers(const std::byte* plane, std::size_t channels, std::size_t width, std::byte* row) {
  for (std::size_t x = 0; x < width; ++x) {
    std::memcpy(row + x * channels * sizeof(T), plane + x * sizeof(T), sizeof(T));
  }
}

/// Calls work(T{}), T having the size of the numbers.
template <typename Work>
void with_size_of(ElementType type, const Work& work) {
  switch (size_of(type)) {
    case 1:
      return work(std::uint8_t{});
    case 2:
      return work(std::uint16_t{});
    case 4:
      return work(std::uint32_t{});
    default:
      return work(std::uint64_t{});
  }
}

}  // namespace

void split_row(std::span<const std::byte> row, const ImageShape& shape, std::uint32_t y,
               std::span<std::byte> pixels) {
  const std::size_t size = size_of(shape.type), line = shape.width * size;
  const std::size_t plane = shape.height * line;
  with_size_of(shape.type, [&](auto number) {
    for (std::size_t c = 0; c < shape.channels; ++c) {
      split_numbers<decltype(number)>(row.data() + c * size, shape.channels, shape.width,
                                      pixels.data() + c * plane + y * line);
    }
  });
}

void join_row(std::span<const std::byte> pixels, const ImageShape& shape, std::uint32_t y,
              std::span<std::byte> row) {
  const std::size_t size = size_of(shape.type), line = shape.width * size;
  const std::size_t plane = shape.height * line;
  with_size_of(shape.type, [&](auto number) {
    for (std::size_t c = 0; c < shape.channels; ++c) {
      join_numbers<decltype(number)>(pixels.data() + c * plane + y * line, shape.channels,
                                     shape.width, row.data() + c * size);
    }
  });
}

}  // namespace forebay
