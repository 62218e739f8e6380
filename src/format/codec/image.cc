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

using Bytes = std::span<const std::byte>;

using Open = ImageReaderPtr (*)(Bytes file, bool indices);

#ifdef FOREBAY_WEBP
constexpr Open kOpenWebp = open_webp;
#else
constexpr Open kOpenWebp = nullptr;
#endif
#ifdef FOREBAY_TIFF
constexpr Open kOpenTiff = open_tiff;
#else
constexpr Open kOpenTiff = nullptr;
#endif
#ifdef FOREBAY_GIF
constexpr Open kOpenGif = open_gif;
#else
constexpr Open kOpenGif = nullptr;
#endif

struct Kind {
  std::string_view name;
  std::string_view start;  ///< of its files; '?' is anything
  ImageFormat format = ImageFormat::none;
  Open open = nullptr;
  std::string_view package = {};  ///< that it is built with
};

using namespace std::string_view_literals;

/// First those that are read, then those that are known.
constexpr std::array<Kind, 22> kKinds{
    {{"JPEG", "\xff\xd8\xff"sv, ImageFormat::jpeg, open_jpeg},
     {"PNG", "\x89PNG\r\n\x1a\n"sv, ImageFormat::png, open_png},
     {"WebP", "RIFF????WEBP"sv, ImageFormat::webp, kOpenWebp, "libwebp-dev"},
     {"TIFF", "II*\0"sv, ImageFormat::tiff, kOpenTiff, "libtiff-dev"},
     {"TIFF", "MM\0*"sv, ImageFormat::tiff, kOpenTiff, "libtiff-dev"},
     {"TIFF", "II+\0\x08\0\0\0"sv, ImageFormat::tiff, kOpenTiff, "libtiff-dev"},
     {"TIFF", "MM\0+\0\x08\0\0"sv, ImageFormat::tiff, kOpenTiff, "libtiff-dev"},
     {"GIF", "GIF8?a"sv, ImageFormat::gif, kOpenGif, "libgif-dev"},
     // The size of the header, behind two letters, is what tells it from a text.
     {"BMP", "BM????\0\0\0\0????\x0c\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x28\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x34\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x38\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x40\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x6c\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"BMP", "BM????\0\0\0\0????\x7c\0\0\0"sv, ImageFormat::bmp, open_bmp},
     {"AVIF", "????ftypavi"sv},
     {"HEIF", "????ftyphei"sv},
     {"HEIF", "????ftypmif"sv},
     {"JPEG XL", "\xff\x0a"sv},
     {"JPEG 2000", "\0\0\0\x0cjP  "sv},
     {"PNM", "P?\n"sv},
     {"OpenEXR", "\x76\x2f\x31\x01"sv}}};

const Kind* kind_of(Bytes file) {
  const auto* const at = std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return file.size() >= kind.start.size() &&
           std::equal(kind.start.begin(), kind.start.end(), file.begin(), [](char a, std::byte b) {
             return a == '?' || static_cast<std::byte>(a) == b;
           });
  });
  return at == kKinds.end() ? nullptr : at;
}

constexpr const char* kLeaveThem = "or leave the values as they are, with --codec bytes";

[[noreturn]] void throw_not_read(const Kind* kind) {
  if (kind == nullptr) {
    throw Error(ErrorKind::corrupt,
                "the bytes are no image: neither JPEG, PNG, WebP, TIFF, GIF, BMP",
                "replace or remove it, or read the values with --codec bytes");
  }
  if (kind->package.empty()) throw_unread(fmt::format("{} images", kind->name));
  throw Error(ErrorKind::unsupported, fmt::format("this build does not read {} images", kind->name),
              fmt::format("build it with {}, {}", kind->package, kLeaveThem));
}

[[noreturn]] void throw_contradiction() {
  throw Error(ErrorKind::usage, "what is said of images contradicts itself",
              "give one of gray, rgb, rgba and palette=index");
}

}  // namespace

void throw_unread(const std::string& which) {
  throw Error(ErrorKind::unsupported, fmt::format("{} are not read", which),
              fmt::format("convert them to PNG, {}", kLeaveThem));
}

std::string to_string(const ImageShape& shape) {
  std::string type = shape.type == ElementType::u8 ? "" : fmt::format("{} ", to_string(shape.type));
  if (shape.bits) type = "1-bit ";
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
      .channels = channels == ImageChannels::stored ? others.channels : channels,
      .wide_bits = wide_bits || others.wide_bits};
  if (both.indices && both.channels != ImageChannels::stored) throw_contradiction();
  return both;
}

ImageFormat image_format(std::span<const std::byte> file) {
  const Kind* kind = kind_of(file);
  return kind == nullptr ? ImageFormat::none : kind->format;
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

void WholeReader::read(const Box& part, unsigned, std::span<std::byte> pixels, Spare& spare) {
  const ImageShape all = shape();
  const bool whole = part == Box{0, 0, all.width, all.height};
  const auto image = whole ? pixels : room_in(spare, all.bytes());
  read_image(image);
  if (!whole) copy_part(image, all, part, pixels);
}

namespace {

ImageReaderPtr open_stored(std::span<const std::byte> file, const ImageChoices& choices) {
  const Kind* kind = kind_of(file);
  if (kind == nullptr || kind->open == nullptr) throw_not_read(kind);
  ImageReaderPtr reader = kind->open(file, choices.indices);
  check_image_shape(reader->shape(), nullptr);
  return reader;
}

}  // namespace

bool is_turned(std::span<const std::byte> file, const ImageChoices& choices) {
  return choices.upright && open_stored(file, choices)->orientation() != 1;
}

ImageReaderPtr open_image(std::span<const std::byte> file, const ImageChoices& choices) {
  ImageReaderPtr reader = open_stored(file, choices);
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

namespace {

[[noreturn]] void throw_another(const ImageShape& found, const ImageShape& expected,
                                const char* remedy) {
  throw Error(ErrorKind::corrupt,
              fmt::format("the image is {} but the data set's images are {}", to_string(found),
                          to_string(expected)),
              remedy);
}

constexpr const char* kSayChannels =
    "say which channels all shall have, for example with --codec auto:rgb";

void require_same_type(const ImageShape& found, const ImageShape& expected) {
  if (found.type == expected.type) return;
  throw_another(found, expected, "bring the files to one depth, or read those of each alone");
}

}  // namespace

void require_same_bits(const ImageShape& found, const ImageShape& expected) {
  if (found.bits == expected.bits) return;
  throw_another(found, expected,
                found.channels != expected.channels
                    ? kSayChannels
                    : "read all as 0 to 255 with --codec auto:gray, or the numbers that are in the "
                      "files with --codec auto:palette=index");
}

void require_same_kind(const ImageShape& found, const ImageShape& expected) {
  require_same_type(found, expected);
  require_same_bits(found, expected);
  if (found.channels != expected.channels) throw_another(found, expected, kSayChannels);
}

void check_image_shape(const ImageShape& found, const ImageShape* expected) {
  if (found.bytes() == 0 || found.bytes() > kMaxImageBytes) {
    throw Error(ErrorKind::corrupt,
                fmt::format("an image of {} pixels is outside the limits of 1 to {} bytes",
                            to_string(found), kMaxImageBytes),
                "scale the images down before packing them");
  }
  if (expected == nullptr || found == *expected) return;
  const bool sides = found.height != expected->height || found.width != expected->width;
  require_same_type(found, *expected);
  require_same_bits(found, *expected);
  if (!sides) require_same_kind(found, *expected);
  throw_another(found, *expected,
                "pack images of one size, for example with 'forebay pack --shape'");
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
