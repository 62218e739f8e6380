// The oracle of transforms: images of doubles, and each step as the plainest of loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "forebay/transform.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay::test {

using Bytes = std::vector<std::byte>;

struct PlainImage {
  std::size_t channels = 0, height = 0, width = 0;
  std::vector<double> values;  ///< channel, height, width

  PlainImage(std::size_t c, std::size_t h, std::size_t w)
      : channels(c), height(h), width(w), values(c * h * w) {}
  double& at(std::size_t c, std::size_t y, std::size_t x) {
    return values[(c * height + y) * width + x];
  }
  double at(std::size_t c, std::size_t y, std::size_t x) const {
    return values[(c * height + y) * width + x];
  }
};

/// A new image of which each value is what `value(channel, y, x)` says.
template <typename Value>
PlainImage make_image(std::size_t channels, std::size_t height, std::size_t width,
                      const Value& value) {
  PlainImage image(channels, height, width);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) image.at(c, y, x) = value(c, y, x);
    }
  }
  return image;
}

inline PlainImage cropped(const PlainImage& in, const Box& box) {
  return make_image(in.channels, box.height, box.width,
                    [&](auto c, auto y, auto x) { return in.at(c, box.y + y, box.x + x); });
}

/// One output value of a line that is resized: the average under a triangle.
template <typename Value>
double triangle(std::size_t from, std::size_t to, std::size_t i, const Value& value) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  const double center = (static_cast<double>(i) + 0.5) * scale;
  double sum = 0, weights = 0;
  for (std::size_t p = 0; p < from; ++p) {
    const double weight = 1 - std::abs(static_cast<double>(p) + 0.5 - center) / reach;
    if (weight <= 0) continue;
    sum += weight * value(p);
    weights += weight;
  }
  return sum / weights;
}

inline PlainImage resized(const PlainImage& in, std::size_t height, std::size_t width) {
  const PlainImage wide = make_image(in.channels, in.height, width, [&](auto c, auto y, auto x) {
    return triangle(in.width, width, x, [&](std::size_t p) { return in.at(c, y, p); });
  });
  return make_image(in.channels, height, width, [&](auto c, auto y, auto x) {
    return triangle(in.height, height, y, [&](std::size_t p) { return wide.at(c, p, x); });
  });
}

inline PlainImage flipped(const PlainImage& in, bool vertical) {
  return make_image(in.channels, in.height, in.width, [&](auto c, auto y, auto x) {
    return vertical ? in.at(c, in.height - 1 - y, x) : in.at(c, y, in.width - 1 - x);
  });
}

inline PlainImage padded(const PlainImage& in, std::size_t by) {
  return make_image(
      in.channels, in.height + 2 * by, in.width + 2 * by, [&](auto c, auto y, auto x) {
        const bool inside = y >= by && x >= by && y - by < in.height && x - by < in.width;
        return inside ? in.at(c, y - by, x - by) : 0.0;
      });
}

inline PlainImage grayed(const PlainImage& in) {
  if (in.channels == 1) return in;
  return make_image(1, in.height, in.width, [&](auto, auto y, auto x) {
    return 0.299 * in.at(0, y, x) + 0.587 * in.at(1, y, x) + 0.114 * in.at(2, y, x);
  });
}

inline PlainImage colored(const PlainImage& in) {
  return make_image(3, in.height, in.width,
                    [&](auto c, auto y, auto x) { return in.at(in.channels == 1 ? 0 : c, y, x); });
}

inline PlainImage swapped(const PlainImage& in) {
  return make_image(3, in.height, in.width,
                    [&](auto c, auto y, auto x) { return in.at(2 - c, y, x); });
}

/// What `work` makes of each value.
template <typename Work>
PlainImage each(const PlainImage& in, const Work& work) {
  return make_image(in.channels, in.height, in.width,
                    [&](auto c, auto y, auto x) { return work(c, in.at(c, y, x)); });
}

inline PlainImage random_bytes(std::mt19937_64& random, std::size_t c, std::size_t h,
                               std::size_t w) {
  return make_image(c, h, w, [&](auto, auto, auto) { return static_cast<double>(random() % 256); });
}

template <typename T>
Bytes stored_as(const PlainImage& image) {
  Bytes bytes(image.values.size() * sizeof(T));
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    const T value = static_cast<T>(image.values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<T> numbers(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

inline Field field_of(const PlainImage& image, ElementType type = ElementType::u8) {
  return {"image", type, {image.channels, image.height, image.width}};
}

inline Bytes applied(const Transform& transform, const Field& field,
                     std::span<const std::byte> image, std::uint64_t seed = 0) {
  Bytes out(transform.output(field).bytes());
  transform.apply(field, image, seed, out);
  return out;
}

inline Bytes applied(const std::string& text, const PlainImage& image, std::uint64_t seed = 0) {
  return applied(Transform::parse(text), field_of(image), stored_as<std::uint8_t>(image), seed);
}

/// The largest difference between numbers of type T and what they should be.
template <typename T>
double difference(std::span<const std::byte> bytes, const PlainImage& expected) {
  const auto values = numbers<T>(bytes);
  if (values.size() != expected.values.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(values[i]) - expected.values[i]));
  }
  return most;
}

}  // namespace forebay::test
