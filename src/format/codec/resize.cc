#include "format/codec/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kOne = 1 << 16;  // weights are fractions of this

/// What one output position takes from its line of input: `count` values from `first` on, whose
/// weights sum to kOne.
struct Taps {
  std::size_t first = 0;
  std::vector<std::uint32_t> weights;
};

// The filter is a box of the size of an output pixel, at least one input pixel wide, over an input
// seen as constant within each pixel. Positions are in units of 1 / (2 * to) input pixels.
Taps taps_for(std::uint64_t position, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t unit = 2 * to;
  const std::uint64_t width = std::max(2 * from, unit);
  const std::uint64_t center = (2 * position + 1) * from;
  const std::uint64_t begin = center > width / 2 ? center - width / 2 : 0;
  const std::uint64_t end = std::min(center + width / 2, from * unit);
  Taps taps{.first = begin / unit, .weights = {}};
  std::uint64_t sum = 0;
  for (std::uint64_t pixel = taps.first; pixel * unit < end; ++pixel) {
    const std::uint64_t overlap = std::min(end, (pixel + 1) * unit) - std::max(begin, pixel * unit);
    taps.weights.push_back(static_cast<std::uint32_t>(overlap * kOne / (end - begin)));
    sum += taps.weights.back();
  }
  *std::max_element(taps.weights.begin(), taps.weights.end()) +=
      static_cast<std::uint32_t>(kOne - sum);
  return taps;
}

std::vector<Taps> all_taps(std::uint32_t from, std::uint32_t to) {
  std::vector<Taps> taps;
  for (std::uint32_t i = 0; i < to; ++i) taps.push_back(taps_for(i, from, to));
  return taps;
}

template <typename T>
T weighted(const Taps& taps, const T* line, std::size_t stride) {
  std::uint64_t sum = kOne / 2;
  for (std::size_t i = 0; i < taps.weights.size(); ++i) {
    sum += taps.weights[i] * std::uint64_t{line[(taps.first + i) * stride]};
  }
  return static_cast<T>(sum / kOne);
}

/// The length of a line before and after.
struct Axis {
  std::uint32_t from, to;
};

template <typename T>
const T* numbers(const std::vector<std::byte>& pixels) {
  return reinterpret_cast<const T*>(pixels.data());
}
template <typename T>
T* numbers(std::vector<std::byte>& pixels) {
  return reinterpret_cast<T*>(pixels.data());
}

template <typename T>
std::vector<std::byte> resize_rows(const std::vector<std::byte>& in, std::size_t rows, Axis axis) {
  const auto taps = all_taps(axis.from, axis.to);
  std::vector<std::byte> out(rows * axis.to * sizeof(T));
  for (std::size_t row = 0; row < rows; ++row) {
    const T* line = numbers<T>(in) + row * axis.from;
    T* to = numbers<T>(out) + row * axis.to;
    for (std::size_t x = 0; x < axis.to; ++x) to[x] = weighted(taps[x], line, 1);
  }
  return out;
}

template <typename T>
std::vector<std::byte> resize_columns(const std::vector<std::byte>& in, std::size_t planes,
                                      std::size_t width, Axis axis) {
  const auto taps = all_taps(axis.from, axis.to);
  std::vector<std::byte> out(planes * axis.to * width * sizeof(T));
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const T* top = numbers<T>(in) + plane * axis.from * width;
    T* row = numbers<T>(out) + plane * axis.to * width;
    for (std::size_t y = 0; y < axis.to; ++y, row += width) {
      for (std::size_t x = 0; x < width; ++x) row[x] = weighted(taps[y], top + x, width);
    }
  }
  return out;
}

template <typename T>
std::vector<std::byte> to_gray(const Image& image) {
  const std::size_t plane = std::size_t{image.shape.height} * image.shape.width;
  std::vector<std::byte> gray(plane * sizeof(T));
  const T* in = numbers<T>(image.pixels);
  for (std::size_t i = 0; i < plane; ++i) {
    const unsigned sum = 299U * in[i] + 587U * in[plane + i] + 114U * in[2 * plane + i];
    numbers<T>(gray)[i] = static_cast<T>((sum + 500) / 1000);
  }
  return gray;
}

template <typename T>
Image with_channels(Image image, std::uint32_t channels) {
  if (image.shape.channels == channels) return image;
  const std::uint32_t before = std::exchange(image.shape.channels, channels);
  if (before == 3 && channels == 1) {
    image.pixels = to_gray<T>(image);
    return image;
  }
  if (before != 1 || channels != 3) {
    throw Error(ErrorKind::usage,
                fmt::format("an image of {} channels cannot become one of {}", before, channels),
                before % 2 == 0 ? "drop its transparency with --codec image:rgb (or image:gray)"
                                : "name a shape of 1 or 3 channels");
  }
  const std::size_t plane = image.pixels.size();
  image.pixels.resize(3 * plane);
  for (std::size_t c = 1; c < 3; ++c) {
    std::copy_n(image.pixels.begin(), plane, image.pixels.begin() + static_cast<long>(c * plane));
  }
  return image;
}

template <typename T>
Image resize_as(Image image, const ImageShape& shape) {
  image = with_channels<T>(std::move(image), shape.channels);
  const std::size_t rows = std::size_t{shape.channels} * image.shape.height;
  if (image.shape.width != shape.width) {
    image.pixels = resize_rows<T>(image.pixels, rows, {image.shape.width, shape.width});
  }
  if (image.shape.height != shape.height) {
    image.pixels = resize_columns<T>(image.pixels, shape.channels, shape.width,
                                     {image.shape.height, shape.height});
  }
  image.shape.height = shape.height;
  image.shape.width = shape.width;
  return image;
}

[[noreturn]] void throw_not_averaged(const Image& image) {
  throw Error(ErrorKind::usage,
              fmt::format("an image of {} ({}) cannot be resized", to_string(image.shape),
                          image.classes ? "numbers of classes, which have no average"
                                        : "numbers of another type than u8 and u16"),
              image.classes ? "pack it in its own size, without --shape; or its colors, with "
                              "--codec image:rgb or image:gray"
                            : "pack it in its own size, without --shape");
}

}  // namespace

Image decode_image(std::span<const std::byte> file, const ImageChoices& choices) {
  const auto reader = open_image(file, choices);
  Image image{.shape = reader->shape(), .pixels = {}, .classes = reader->classes()};
  image.pixels.resize(image.shape.bytes());
  reader->read_planes(image.pixels);
  return image;
}

Image resize(Image image, const ImageShape& shape) {
  const bool same = image.shape.channels == shape.channels && image.shape.height == shape.height &&
                    image.shape.width == shape.width;
  if (same) return image;
  if (image.classes) throw_not_averaged(image);
  if (image.shape.type == ElementType::u8) return resize_as<std::uint8_t>(std::move(image), shape);
  if (image.shape.type != ElementType::u16) throw_not_averaged(image);
  return resize_as<std::uint16_t>(std::move(image), shape);
}

}  // namespace forebay
