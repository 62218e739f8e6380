// BMP, which no library reads alone.
//
//   "BM", size, 0, where pixels begin | size of header, width, height, 1, bits, compression, ...,
//   colors used, ... | masks | palette: blue, green, red(, 0) | rows from the last to the first
//
// Rows are whole numbers of four bytes; a negative height says that they begin with the first. What
// a header says is checked against the file before pixels are looked at.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

using Bytes = std::span<const std::byte>;
static_assert(std::endian::native == std::endian::little);  // as numbers are stored

constexpr std::size_t kFileHeader = 14, kOldHeader = 12, kUsualHeader = 40;
enum Compression : std::uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3 };

[[noreturn]] void throw_corrupt(const std::string& what) {
  throw Error(ErrorKind::corrupt, fmt::format("the BMP image does not decode: {}", what),
              "replace the image");
}

struct Header {
  std::uint32_t width = 0, height = 0, bits = 0;
  bool downwards = false;  ///< the first row first
  std::uint32_t compression = kPlain;
  std::uint32_t masks[4] = {};  ///< red, green, blue, opacity
  std::size_t palette = 0, color_bytes = 4, colors = 0, pixels = 0;

  explicit Header(Bytes file) {
    if (file.size() < kFileHeader + kOldHeader) throw_corrupt("it is cut");
    const auto size = load<std::uint32_t>(file, kFileHeader);
    if (size > 124 || file.size() < kFileHeader + size) throw_corrupt("its header is cut");
    pixels = load<std::uint32_t>(file, 10);
    palette = kFileHeader + size;
    if (size == kOldHeader) {
      read_old(file);
    } else {
      read(file, size);
    }
    const std::size_t all = bits <= 8 ? std::size_t{1} << bits : 0;
    if (colors == 0 || colors > all) colors = all;
  }

  std::size_t row_bytes() const { return (std::size_t{width} * bits + 31) / 32 * 4; }

 private:
  void read_old(Bytes file) {
    width = load<std::uint16_t>(file, 18);
    height = load<std::uint16_t>(file, 20);
    bits = load<std::uint16_t>(file, 24);
    color_bytes = 3;
  }

  void read(Bytes file, std::size_t size) {
    if (size < kUsualHeader) throw_corrupt("its header is cut");
    const auto signed_height = load<std::int32_t>(file, 22);
    const auto signed_width = load<std::int32_t>(file, 18);
    if (signed_width <= 0 || signed_height == std::numeric_limits<std::int32_t>::min()) {
      throw_corrupt("its sides are none");
    }
    downwards = signed_height < 0;
    width = static_cast<std::uint32_t>(signed_width);
    height = static_cast<std::uint32_t>(downwards ? -signed_height : signed_height);
    bits = load<std::uint16_t>(file, 28);
    compression = load<std::uint32_t>(file, 30);
    colors = load<std::uint32_t>(file, 46);
    if (compression != kMasks) return;
    // The shortest header has masks of three colors behind it.
    const std::size_t count = size >= kUsualHeader + 16 ? 4 : 3;
    if (size == kUsualHeader) palette += 12;
    if (file.size() < kFileHeader + kUsualHeader + 4 * count) throw_corrupt("its header is cut");
    for (std::size_t i = 0; i < count; ++i) {
      masks[i] = load<std::uint32_t>(file, kFileHeader + kUsualHeader + 4 * i);
    }
  }
};

/// The pixels of plain rows; throws where they are not all there.
Bytes rows_of(Bytes file, const Header& header) {
  const std::size_t bytes = header.row_bytes() * header.height;
  if (header.pixels > file.size() || file.size() - header.pixels < bytes) {
    throw_corrupt("the file ends too early");
  }
  return file.subspan(header.pixels, bytes);
}

/// Row `y` from above.
const std::byte* row_of(Bytes rows, const Header& header, std::size_t y) {
  return rows.data() + (header.downwards ? y : header.height - 1 - y) * header.row_bytes();
}

/// Up to 256 colors, of 1, 2, 4 or 8 bits, in rows or runs.
class PaletteBmp final : public PaletteReader {
 public:
  PaletteBmp(Bytes file, const Header& header, bool indices)
      : PaletteReader(indices), file_(file), header_(header) {
    height_ = header.height;
    width_ = header.width;
    const bool runs8 = header.compression == kRuns8 && header.bits == 8;
    const bool runs4 = header.compression == kRuns4 && header.bits == 4;
    if (header.compression != kPlain && !runs8 && !runs4)
      throw_unread("BMP images of this compression");
    palette_.size = header.colors;
    for (std::size_t i = 0; i < header.colors; ++i) {
      const std::size_t at = header.palette + i * header.color_bytes;
      if (at + 3 > file.size()) throw_corrupt("its palette is cut");
      palette_.colors[i] = {file[at + 2], file[at + 1], file[at], std::byte{255}};
    }
    const auto is = [&](std::size_t i, std::byte gray) {
      return std::ranges::all_of(std::span(palette_.colors[i]).first(3),
                                 [gray](std::byte one) { return one == gray; });
    };
    bits_ = header.colors == 2 && is(0, std::byte{0}) && is(1, std::byte{255});
  }

 private:
  void read_indices(std::span<std::byte> numbers) override {
    if (header_.compression != kPlain) return read_runs(numbers);
    const Bytes rows = rows_of(file_, header_);
    for (std::size_t y = 0; y < height_; ++y) {
      unpack_numbers(row_of(rows, header_, y), header_.bits, numbers.subspan(y * width_, width_));
    }
  }

  /// Runs of one number (of two in turns, where they have four bits), and between them numbers as
  /// they are, ends of rows, and leaps. What is leaped over is 0.
  void read_runs(std::span<std::byte> numbers) {
    std::ranges::fill(numbers, std::byte{0});
    std::size_t at = header_.pixels, x = 0, y = 0;
    const auto next = [&] {
      if (at >= file_.size()) throw_corrupt("the file ends too early");
      return std::to_integer<std::size_t>(file_[at++]);
    };
    const auto put = [&](std::size_t pair, std::size_t i) {
      const std::size_t number = header_.compression == kRuns8 ? pair
                                 : i % 2 == 0                  ? pair >> 4
                                                               : pair & 15;
      if (x >= width_ || y >= height_) throw_corrupt("a run leaves the image");
      const std::size_t row = header_.downwards ? y : height_ - 1 - y;
      numbers[row * width_ + x++] = static_cast<std::byte>(number);
    };
    for (;;) {
      const std::size_t count = next(), value = next();
      if (count > 0) {
        for (std::size_t i = 0; i < count; ++i) put(value, i);
      } else if (value == 0) {
        x = 0;
        ++y;
      } else if (value == 1) {
        return;
      } else if (value == 2) {
        x += next();
        y += next();
      } else {
        const std::size_t in_byte = header_.compression == kRuns8 ? 1 : 2, first = at;
        for (std::size_t i = 0, pair = 0; i < value; ++i) {
          if (i % in_byte == 0) pair = next();
          put(pair, i);
        }
        if ((at - first) % 2 != 0) next();
      }
    }
  }

  Bytes file_;
  Header header_;
};

/// Colors of 16, 24 or 32 bits a pixel, cut out of it by masks.
class ColorBmp final : public ImageReader {
 public:
  ColorBmp(Bytes file, const Header& header) : file_(file), header_(header) {
    if (header.compression != kPlain && header.compression != kMasks) {
      throw_unread("BMP images of this compression");
    }
    const auto& masks = header.masks;
    if ((masks[0] | masks[1] | masks[2] | masks[3]) == 0) set_usual_masks();
    for (std::size_t i = 0; i < 3; ++i) {
      if (header_.masks[i] == 0) throw_corrupt("a color has no mask");
    }
  }

  ImageShape shape() const override {
    return {header_.masks[3] == 0 ? 3U : 4U, header_.height, header_.width};
  }

  void read(const Box& part, unsigned, std::span<std::byte> pixels, Spare&) override {
    const Bytes rows = rows_of(file_, header_);
    const std::size_t bytes = header_.bits / 8, channels = shape().channels;
    std::byte* out = pixels.data();
    for (std::size_t y = part.y; y < part.y + part.height; ++y) {
      const std::byte* in = row_of(rows, header_, y) + part.x * bytes;
      for (std::size_t x = 0; x < part.width; ++x, in += bytes) {
        std::uint32_t pixel = 0;
        std::memcpy(&pixel, in, bytes);
        for (std::size_t c = 0; c < channels; ++c) *out++ = channel(pixel, header_.masks[c]);
      }
    }
  }

 private:
  void set_usual_masks() {
    const bool five_bits = header_.bits == 16;
    header_.masks[0] = five_bits ? 0x7c00 : 0xff0000;
    header_.masks[1] = five_bits ? 0x03e0 : 0x00ff00;
    header_.masks[2] = five_bits ? 0x001f : 0x0000ff;
    // Masks that are there and empty mean that the fourth byte counts.
    if (header_.compression == kMasks && header_.bits == 32) header_.masks[3] = 0xff000000;
  }

  /// As one of 256 values.
  static std::byte channel(std::uint32_t pixel, std::uint32_t mask) {
    const auto shift = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint64_t most = mask >> shift;
    return static_cast<std::byte>((pixel & mask) >> shift == most
                                      ? 255
                                      : std::uint64_t{(pixel & mask) >> shift} * 255 / most);
  }

  Bytes file_;
  Header header_;
};

}  // namespace

ImageReaderPtr open_bmp(std::span<const std::byte> file, bool indices) {
  const Header header(file);
  switch (header.bits) {
    case 1:
    case 2:
    case 4:
    case 8:
      return std::make_unique<PaletteBmp>(file, header, indices);
    case 16:
    case 24:
    case 32:
      return std::make_unique<ColorBmp>(file, header);
    default:
      throw_unread(fmt::format("BMP images of {} bits a pixel", header.bits));
  }
}

}  // namespace forebay
