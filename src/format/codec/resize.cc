#include "format/codec/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "forebay/error.hpp"

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

std::byte weighted(const Taps& taps, const std::byte* line, std::size_t stride) {
  std::uint64_t sum = kOne / 2;
  for (std::size_t i = 0; i < taps.weights.size(); ++i) {
    sum += taps.weights[i] * std::to_integer<std::uint64_t>(line[(taps.first + i) * stride]);
  }
  return static_cast<std::byte>(sum / kOne);
}

/// The length of a line before and after.
struct Axis {
  std::uint32_t from, to;
};

std::vector<std::byte> resize_rows(std::span<const std::byte> in, std::size_t rows, Axis axis) {
  const auto taps = all_taps(axis.from, axis.to);
  std::vector<std::byte> out(rows * axis.to);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::byte* line = in.data() + row * axis.from;
    for (std::size_t x = 0; x < axis.to; ++x) out[row * axis.to + x] = weighted(taps[x], line, 1);
  }
  return out;
}

std::vector<std::byte> resize_columns(std::span<const std::byte> in, std::size_t planes,
                                      std::size_t width, Axis axis) {
  const auto taps = all_taps(axis.from, axis.to);
  std::vector<std::byte> out(planes * axis.to * width);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const std::byte* top = in.data() + plane * axis.from * width;
    std::byte* row = out.data() + plane * axis.to * width;
    for (std::size_t y = 0; y < axis.to; ++y, row += width) {
      for (std::size_t x = 0; x < width; ++x) row[x] = weighted(taps[y], top + x, width);
    }
  }
  return out;
}

Image to_gray(const Image& image) {
  const std::size_t plane = std::size_t{image.shape.height} * image.shape.width;
  Image gray{{1, image.shape.height, image.shape.width}, std::vector<std::byte>(plane)};
  const auto channel = [&](std::size_t c, std::size_t i) {
    return std::to_integer<unsigned>(image.pixels[c * plane + i]);
  };
  for (std::size_t i = 0; i < plane; ++i) {
    const unsigned sum = 299 * channel(0, i) + 587 * channel(1, i) + 114 * channel(2, i);
    gray.pixels[i] = static_cast<std::byte>((sum + 500) / 1000);
  }
  return gray;
}

Image with_channels(Image image, std::uint32_t channels) {
  if (image.shape.channels == channels) return image;
  if (image.shape.channels == 3 && channels == 1) return to_gray(image);
  if (image.shape.channels != 1 || channels != 3) {
    throw Error(ErrorKind::usage,
                fmt::format("an image of {} channels cannot become one of {}", image.shape.channels,
                            channels),
                "images have 1 or 3 channels");
  }
  const std::size_t plane = image.pixels.size();
  image.pixels.resize(3 * plane);
  for (std::size_t c = 1; c < 3; ++c) {
    std::copy_n(image.pixels.begin(), plane, image.pixels.begin() + static_cast<long>(c * plane));
  }
  image.shape.channels = 3;
  return image;
}

}  // namespace

Image decode_image(std::span<const std::byte> file) {
  Image image{.shape = image_shape(file), .pixels = {}};
  image.pixels.resize(image.shape.bytes());
  decode_image(file, image.shape, image.pixels);
  return image;
}

Image resize(Image image, const ImageShape& shape) {
  image = with_channels(std::move(image), shape.channels);
  const std::size_t rows = std::size_t{shape.channels} * image.shape.height;
  if (image.shape.width != shape.width) {
    image.pixels = resize_rows(image.pixels, rows, {image.shape.width, shape.width});
  }
  if (image.shape.height != shape.height) {
    image.pixels = resize_columns(image.pixels, shape.channels, shape.width,
                                  {image.shape.height, shape.height});
  }
  image.shape = shape;
  return image;
}

}  // namespace forebay
