// Compiled with the optimizer's full effort and without fused operations (src/CMakeLists.txt).
#include "format/transform/pixels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/half.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::size_t kBlock = 512;

std::size_t row_values(const PixelView& image) {
  return std::size_t{image.shape.width} * image.shape.channels;
}

std::uint8_t gray_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500) / 1000);
}
float gray_of(const float* rgb) { return (0.299F * rgb[0] + 0.587F * rgb[1]) + 0.114F * rgb[2]; }

/// Calls `work` with each row, as a pointer of the type of the values, and its number.
template <typename Work>
void for_each_row(const PixelView& image, const Work& work) {
  for (std::size_t y = 0; y < image.shape.height; ++y) {
    if (image.floats) {
      work(image.row<float>(y), y);
    } else {
      work(image.row<std::uint8_t>(y), y);
    }
  }
}

template <typename T>
void load_as_float(const std::byte* from, std::size_t count, float* into) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    into[i] = static_cast<float>(value);
  }
}

void load_numbers(const std::byte* from, ElementType type, std::size_t count, float* into) {
  if (type == ElementType::f16) return widen_float16(from, into, count);
  with_number(type, [&](auto number) { load_as_float<decltype(number)>(from, count, into); });
}

void load_numbers(const std::byte* from, ElementType, std::size_t count, std::uint8_t* into) {
  std::memcpy(into, from, count);
}

/// `count` numbers of one channel to every `step`-th value of `out`.
template <typename T>
void load_channel(const std::byte* from, ElementType type, std::size_t count, T* out,
                  std::size_t step) {
  T block[kBlock];
  const std::size_t size = size_of(type);
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t length = std::min(kBlock, count - done);
    load_numbers(from + done * size, type, length, block);
    for (std::size_t i = 0; i < length; ++i) out[(done + i) * step] = block[i];
  }
}

template <typename T>
void load_as(const StoredPixels& from, const Box& box, const PixelView& to) {
  const std::size_t channels = from.shape.channels, size = size_of(from.type);
  const bool mixed = from.hwc || channels == 1;  // as they are to become
  const std::size_t pixel = mixed ? channels : 1;
  for (std::size_t y = 0; y < box.height; ++y) {
    const std::size_t first = ((box.y + y) * from.shape.width + box.x) * pixel;
    if (mixed) {
      load_numbers(from.bytes.data() + first * size, from.type, row_values(to), to.row<T>(y));
      continue;
    }
    const std::size_t plane = std::size_t{from.shape.height} * from.shape.width;
    for (std::size_t c = 0; c < channels; ++c) {
      load_channel(from.bytes.data() + (c * plane + first) * size, from.type, box.width,
                   to.row<T>(y) + c, channels);
    }
  }
}

}  // namespace

PixelView PixelView::part(const Box& box) const {
  PixelView view = *this;
  view.shape.height = box.height;
  view.shape.width = box.width;
  view.data += box.y * stride + box.x * pixel_bytes();
  return view;
}

PixelView image_in(Spare& memory, const ImageShape& shape, bool floats) {
  const std::size_t bytes = shape.bytes() * (floats ? sizeof(float) : 1);
  PixelView view{.shape = shape, .floats = floats, .data = nullptr, .stride = 0};
  view.data = room_in(memory, bytes).data();
  view.stride = shape.width * view.pixel_bytes();
  return view;
}

void copy_pixels(const PixelView& from, const PixelView& to) {
  for (std::size_t y = 0; y < to.shape.height; ++y) {
    std::memcpy(to.row<std::byte>(y), from.row<std::byte>(y), to.shape.width * to.pixel_bytes());
  }
}

void pad_pixels(const PixelView& from, std::uint32_t by, const PixelView& to) {
  for (std::size_t y = 0; y < to.shape.height; ++y) {
    std::memset(to.row<std::byte>(y), 0, to.shape.width * to.pixel_bytes());
  }
  copy_pixels(from, to.part({by, by, from.shape.width, from.shape.height}));
}

void make_gray(const PixelView& from, const PixelView& to) {
  for_each_row(to, [&]<typename T>(T* out, std::size_t y) {
    const T* in = from.row<T>(y);
    for (std::size_t x = 0; x < to.shape.width; ++x) out[x] = gray_of(in + 3 * x);
  });
}

void make_color(const PixelView& from, const PixelView& to) {
  for_each_row(to, [&]<typename T>(T* out, std::size_t y) {
    const T* in = from.row<T>(y);
    for (std::size_t x = 0; x < to.shape.width; ++x) {
      out[3 * x] = out[3 * x + 1] = out[3 * x + 2] = in[x];
    }
  });
}

void make_floats(const PixelView& from, const PixelView& to) {
  for (std::size_t y = 0; y < to.shape.height; ++y) {
    std::copy_n(from.row<std::uint8_t>(y), row_values(to), to.row<float>(y));
  }
}

void make_bytes(const PixelView& from, const PixelView& to) {
  for (std::size_t y = 0; y < to.shape.height; ++y) {
    const float* in = from.row<float>(y);
    std::uint8_t* out = to.row<std::uint8_t>(y);
    for (std::size_t i = 0; i < row_values(to); ++i) out[i] = rounded_to<std::uint8_t>(in[i]);
  }
}

void swap_red_and_blue(const PixelView& image) {
  for_each_row(image, [&](auto* row, std::size_t) {
    for (std::size_t x = 0; x < image.shape.width; ++x) std::swap(row[3 * x], row[3 * x + 2]);
  });
}

void mirror(const PixelView& image) {
  const std::size_t channels = image.shape.channels, width = image.shape.width;
  for_each_row(image, [&](auto* row, std::size_t) {
    for (std::size_t x = 0; x < width / 2; ++x) {
      std::swap_ranges(row + x * channels, row + (x + 1) * channels,
                       row + (width - 1 - x) * channels);
    }
  });
}

void turn_upside_down(const PixelView& image) {
  const std::size_t height = image.shape.height, bytes = image.shape.width * image.pixel_bytes();
  for (std::size_t y = 0; y < height / 2; ++y) {
    std::swap_ranges(image.row<std::byte>(y), image.row<std::byte>(y) + bytes,
                     image.row<std::byte>(height - 1 - y));
  }
}

void require_image_type(ElementType type) {
  switch (type) {
    case ElementType::u8:
    case ElementType::i8:
    case ElementType::u16:
    case ElementType::i16:
    case ElementType::f16:
    case ElementType::f32:
    case ElementType::f64:
      return;
    default:
      throw Error(ErrorKind::usage,
                  fmt::format("images of type {} cannot be transformed", to_string(type)),
                  "types are u8, i8, u16, i16, f16, f32 and f64");
  }
}

void load_pixels(const StoredPixels& from, const Box& box, const PixelView& to) {
  if (to.floats) {
    load_as<float>(from, box, to);
  } else {
    load_as<std::uint8_t>(from, box, to);
  }
}

}  // namespace forebay
