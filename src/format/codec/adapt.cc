// An image turned upright, and its channels as they are wanted: a reader before another one.
//
// Orientation n of EXIF, for the stored image ABC above DEF:
//
//   1 ABC   2 CBA   3 FED   4 DEF   5 AD   6 DA   7 FC   8 CF
//     DEF     FED     CBA     ABC     BE     EB     EB     BE
//                                     CF     FC     DA     AD
//
// So of each, rows may be columns (5 to 8), and the stored image's rows or columns be taken from
// their end. A part of the upright image is one of the stored one: that is what is decoded.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

/// How pixels of the upright image are found in the stored one.
struct Turn {
  bool rows_are_columns = false;
  bool from_last_column = false, from_last_row = false;  ///< of the stored image

  static Turn of(unsigned n) {
    return {.rows_are_columns = n >= 5,
            .from_last_column = n == 2 || n == 3 || n == 7 || n == 8,
            .from_last_row = n == 3 || n == 4 || n == 6 || n == 7};
  }
  bool turns() const { return rows_are_columns || from_last_column || from_last_row; }
};

std::uint32_t channels_of(const ImageShape& stored, ImageChannels wanted) {
  switch (wanted) {
    case ImageChannels::stored:
      return stored.channels;
    case ImageChannels::opaque:
      return stored.channels - (stored.channels % 2 == 0 ? 1 : 0);
    case ImageChannels::gray:
      return 1;
    case ImageChannels::rgb:
      return 3;
    case ImageChannels::rgba:
      return 4;
  }
  return stored.channels;
}

std::uint8_t gray_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500) / 1000);
}
std::uint16_t gray_of(const std::uint16_t* rgb) {
  return static_cast<std::uint16_t>((299U * rgb[0] + 587U * rgb[1] + 114U * rgb[2] + 500) / 1000);
}
float gray_of(const float* rgb) { return (0.299F * rgb[0] + 0.587F * rgb[1]) + 0.114F * rgb[2]; }

template <typename T>
constexpr T opaque_value() {
  return std::is_floating_point_v<T> ? T{1} : std::numeric_limits<T>::max();
}

/// A pixel of `from` channels as one of `to`; an even number of them has transparency at its end.
template <typename T>
void convert(const T* in, std::uint32_t from, T* out, std::uint32_t to) {
  const bool color = from >= 3;
  if (to <= 2) {
    out[0] = color ? gray_of(in) : in[0];
  } else {
    for (std::size_t c = 0; c < 3; ++c) out[c] = in[color ? c : 0];
  }
  if (to % 2 == 0) out[to - 1] = from % 2 == 0 ? in[from - 1] : opaque_value<T>();
}

template <std::size_t kBytes>
void move_pixels(const std::byte* in, std::ptrdiff_t step, std::uint32_t width, std::byte* out) {
  for (std::uint32_t x = 0; x < width; ++x, in += step, out += kBytes) std::memcpy(out, in, kBytes);
}

/// Pixels of `bytes` each, `step` from one to the next: those of usual images without a call for
/// each.
void move_row(const std::byte* in, std::ptrdiff_t step, std::uint32_t width, std::size_t bytes,
              std::byte* out) {
  switch (bytes) {
    case 1:
      return move_pixels<1>(in, step, width, out);
    case 2:
      return move_pixels<2>(in, step, width, out);
    case 3:
      return move_pixels<3>(in, step, width, out);
    case 4:
      return move_pixels<4>(in, step, width, out);
    default:
      for (std::uint32_t x = 0; x < width; ++x, in += step, out += bytes) {
        std::memcpy(out, in, bytes);
      }
  }
}

class AdaptedReader final : public ImageReader {
 public:
  AdaptedReader(ImageReaderPtr inner, const Turn& turn, ImageChannels wanted, bool widens_bits)
      : inner_(std::move(inner)),
        turn_(turn),
        stored_(inner_->shape()),
        shape_(stored_),
        keeps_channels_(channels_of(stored_, wanted) == stored_.channels),
        widens_bits_(widens_bits) {
    shape_.channels = channels_of(stored_, wanted);
    if (widens_bits) shape_.bits = false;
    if (turn.rows_are_columns) std::swap(shape_.height, shape_.width);
    if (!keeps_channels_) require_convertible();
  }

  ImageShape shape() const override { return shape_; }
  bool classes() const override { return inner_->classes() && !widens_bits_; }

  /// The last pixel of an image that is shrunk may stand for fewer than the others, but the first
  /// may not: from that end only what leaves no rest.
  unsigned most_shrink() const override {
    unsigned shrink = inner_->most_shrink();
    while ((turn_.from_last_column && stored_.width % shrink != 0) ||
           (turn_.from_last_row && stored_.height % shrink != 0)) {
      shrink /= 2;
    }
    return shrink;
  }

  void read(const Box& part, unsigned shrink, std::span<std::byte> pixels, Spare& spare) override {
    const Box box = stored_box(part, shrink);
    const std::size_t pixel = stored_.channels * size_of(stored_.type);
    std::vector<std::byte> image(box.pixels() * pixel);
    inner_->read(box, shrink, image, spare);
    if (widens_bits_) {
      for (std::byte& value : image) value = value == std::byte{0} ? value : std::byte{255};
    }
    // From pixel to pixel of what comes out, in what has been read.
    auto right = static_cast<std::ptrdiff_t>(pixel);
    auto down = static_cast<std::ptrdiff_t>(box.width * pixel);
    const std::byte* first = image.data();
    if (turn_.from_last_column) first += right * (box.width - 1), right = -right;
    if (turn_.from_last_row) first += down * (box.height - 1), down = -down;
    if (turn_.rows_are_columns) std::swap(right, down);
    std::byte* out = pixels.data();
    for (std::uint32_t y = 0; y < part.height; ++y) {
      out = put_row(first + down * y, right, part.width, out);
    }
  }

 private:
  void require_convertible() const {
    const bool known = stored_.type == ElementType::u8 || stored_.type == ElementType::u16 ||
                       stored_.type == ElementType::f32;
    if (known && stored_.channels <= 4) return;
    throw Error(ErrorKind::unsupported,
                fmt::format("channels of an image of {} are not converted", to_string(stored_)),
                "read the images without gray, rgb and rgba");
  }

  Box stored_box(Box part, unsigned shrink) const {
    if (turn_.rows_are_columns) {
      std::swap(part.x, part.y);
      std::swap(part.width, part.height);
    }
    if (turn_.from_last_column) part.x = shrunk(stored_.width, shrink) - part.x - part.width;
    if (turn_.from_last_row) part.y = shrunk(stored_.height, shrink) - part.y - part.height;
    return part;
  }

  std::byte* put_row(const std::byte* in, std::ptrdiff_t step, std::uint32_t width,
                     std::byte* out) const {
    const std::size_t pixel = shape_.channels * size_of(shape_.type);
    if (keeps_channels_) {
      move_row(in, step, width, pixel, out);
    } else if (stored_.type == ElementType::u8) {
      convert_row<std::uint8_t>(in, step, width, out);
    } else if (stored_.type == ElementType::u16) {
      convert_row<std::uint16_t>(in, step, width, out);
    } else {
      convert_row<float>(in, step, width, out);
    }
    return out + width * pixel;
  }

  /// `in` and `out` are aligned to anything.
  template <typename T>
  void convert_row(const std::byte* in, std::ptrdiff_t step, std::uint32_t width,
                   std::byte* out) const {
    for (std::uint32_t x = 0; x < width; ++x, in += step, out += shape_.channels * sizeof(T)) {
      T from[4], to[4];
      std::memcpy(from, in, stored_.channels * sizeof(T));
      convert(from, stored_.channels, to, shape_.channels);
      std::memcpy(out, to, shape_.channels * sizeof(T));
    }
  }

  ImageReaderPtr inner_;
  Turn turn_;
  ImageShape stored_, shape_;
  bool keeps_channels_;
  bool widens_bits_;
};

/// `a` times `b`, in 255ths, rounded.
constexpr unsigned scaled(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

}  // namespace

void make_rgb(std::span<std::byte> inks, unsigned none) {
  for (std::size_t from = 0, to = 0; from + 4 <= inks.size(); from += 4, to += 3) {
    const auto ink = [&](std::size_t i) {
      return std::to_integer<unsigned>(inks[from + i]) ^ none;
    };
    const unsigned light = 255 - ink(3);
    for (std::size_t c = 0; c < 3; ++c) {
      inks[to + c] = static_cast<std::byte>(light - scaled(ink(c), light));
    }
  }
}

ImageReaderPtr adapt(ImageReaderPtr reader, const ImageChoices& choices) {
  const Turn turn = Turn::of(choices.upright ? reader->orientation() : 1);
  const ImageShape shape = reader->shape();
  const bool bits = shape.bits && (choices.wide_bits || choices.channels != ImageChannels::stored);
  const bool other = channels_of(shape, choices.channels) != shape.channels;
  if (!turn.turns() && !other && !bits) return reader;
  return std::make_unique<AdaptedReader>(std::move(reader), turn, choices.channels, bits);
}

}  // namespace forebay
