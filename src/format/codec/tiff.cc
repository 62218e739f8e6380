// TIFF through libtiff: the first image of a file, in the numbers that it has.
//
// A file has strips of rows or tiles, channels side by side or each for itself, of 1 to 64 bits.
// All of it is read, and brought into rows of mixed channels. Inks and colors as JPEG has them
// become RGB, numbers of a palette its colors, and transparency that colors were multiplied with is
// divided out. Other channels than three colors and transparency stay what they are.
#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

struct CloseTiff {
  void operator()(TIFF* one) const { TIFFClose(one); }
};
struct FreeOptions {
  void operator()(TIFFOpenOptions* one) const { TIFFOpenOptionsFree(one); }
};

/// The file as libtiff reads it, and what it says of faults.
class TiffFile : private NonCopyable {
 public:
  explicit TiffFile(std::span<const std::byte> file) : file_(file) {
    const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
    if (options == nullptr) throw_corrupt();
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(kMaxImageBytes));
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, this);
    tiff_.reset(TIFFClientOpenExt("image", "rm", this, read, write, seek, close, size, nullptr,
                                  nullptr, options.get()));
    if (tiff_ == nullptr) throw_corrupt();
  }

  TIFF* get() const { return tiff_.get(); }

  template <typename T>
  T field(std::uint32_t tag, T otherwise) const {
    T value = otherwise;
    return TIFFGetFieldDefaulted(get(), tag, &value) == 1 ? value : otherwise;
  }

  [[noreturn]] void throw_corrupt() const {
    throw Error(ErrorKind::corrupt, fmt::format("the TIFF image does not decode: {}", message_),
                "replace the image");
  }
  void require(bool good) const {
    if (!good) throw_corrupt();
  }
  /// Throws also where a library inside of libtiff has made up pixels and gone on.
  void require_whole() const { require(!made_up_); }

 private:
  static TiffFile& of(void* one) { return *static_cast<TiffFile*>(one); }

  void keep(const char* format, std::va_list arguments) {
    std::vsnprintf(message_, sizeof message_, format, arguments);
    for (char& c : message_) c = c == '\n' ? ' ' : c;
  }
  static int on_error(TIFF*, void* self, const char*, const char* format, std::va_list arguments) {
    of(self).keep(format, arguments);
    return 1;
  }
  static int on_warning(TIFF*, void* self, const char* module, const char* format,
                        std::va_list arguments) {
    const std::string_view from = module == nullptr ? "" : module;
    if (!from.starts_with("JPEGLib") && !from.starts_with("Fax")) return 1;
    of(self).keep(format, arguments);
    of(self).made_up_ = true;
    return 1;
  }

  static tmsize_t read(thandle_t self, void* out, tmsize_t size) {
    TiffFile& file = of(self);
    const std::uint64_t left =
        file.file_.size() - std::min<std::uint64_t>(file.at_, file.file_.size());
    const std::uint64_t taken =
        std::min<std::uint64_t>(left, static_cast<std::uint64_t>(std::max<tmsize_t>(size, 0)));
    if (taken > 0) std::memcpy(out, file.file_.data() + file.at_, taken);
    file.at_ += taken;
    return static_cast<tmsize_t>(taken);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t self, toff_t offset, int whence) {
    TiffFile& file = of(self);
    const std::uint64_t base = whence == SEEK_SET   ? 0
                               : whence == SEEK_CUR ? file.at_
                                                    : file.file_.size();
    file.at_ = base + offset;
    return file.at_;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t self) { return of(self).file_.size(); }

  std::span<const std::byte> file_;
  std::uint64_t at_ = 0;
  char message_[200] = "it is damaged";
  bool made_up_ = false;
  std::unique_ptr<TIFF, CloseTiff> tiff_;  // last: closed while the others live
};

/// What the tags say of pixels.
struct Layout {
  std::uint32_t width = 0, height = 0;
  std::uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, colors = PHOTOMETRIC_MINISBLACK;
  bool apart = false;       ///< each channel for itself
  bool multiplied = false;  ///< colors with transparency

  explicit Layout(const TiffFile& file) {
    width = file.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
    height = file.field<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
    bits = file.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
    samples = file.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
    format = file.field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    colors = file.field<std::uint16_t>(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    apart = file.field<std::uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
            PLANARCONFIG_SEPARATE;
    if (colors == PHOTOMETRIC_YCBCR) ask_for_rgb(file);
    std::uint16_t count = 0;
    const std::uint16_t* extra = nullptr;
    if (TIFFGetFieldDefaulted(file.get(), TIFFTAG_EXTRASAMPLES, &count, &extra) == 1 && count > 0) {
      multiplied = extra[0] == EXTRASAMPLE_ASSOCALPHA;
    }
    check();
  }

  bool palette() const { return colors == PHOTOMETRIC_PALETTE; }
  bool inks() const { return colors == PHOTOMETRIC_SEPARATED; }
  bool white_is_zero() const {
    return colors == PHOTOMETRIC_MINISWHITE && format == SAMPLEFORMAT_UINT && bits <= 16;
  }

  ElementType type() const {
    switch (format << 8 | bits) {
      case SAMPLEFORMAT_UINT << 8 | 16:
        return ElementType::u16;
      case SAMPLEFORMAT_UINT << 8 | 32:
        return ElementType::u32;
      case SAMPLEFORMAT_UINT << 8 | 64:
        return ElementType::u64;
      case SAMPLEFORMAT_INT << 8 | 8:
        return ElementType::i8;
      case SAMPLEFORMAT_INT << 8 | 16:
        return ElementType::i16;
      case SAMPLEFORMAT_INT << 8 | 32:
        return ElementType::i32;
      case SAMPLEFORMAT_INT << 8 | 64:
        return ElementType::i64;
      case SAMPLEFORMAT_IEEEFP << 8 | 16:
        return ElementType::f16;
      case SAMPLEFORMAT_IEEEFP << 8 | 32:
        return ElementType::f32;
      case SAMPLEFORMAT_IEEEFP << 8 | 64:
        return ElementType::f64;
      default:
        return ElementType::u8;
    }
  }

 private:
  void ask_for_rgb(const TiffFile& file) {
    const auto compression = file.field<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    if (compression != COMPRESSION_JPEG)
      throw_unread("TIFF images of brightness and color differences");
    file.require(TIFFSetField(file.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB) == 1);
    colors = PHOTOMETRIC_RGB;
  }

  void check() const {
    const bool few = bits == 1 || bits == 2 || bits == 4;
    const bool known = (few && format == SAMPLEFORMAT_UINT) ||
                       (bits == 8 && format == SAMPLEFORMAT_UINT) || type() != ElementType::u8;
    if (!known)
      throw_unread(fmt::format("TIFF images of {} bits and number format {}", bits, format));
    if (few && samples != 1)
      throw_unread(fmt::format("TIFF images of {} channels of {} bits", samples, bits));
    const bool gray = colors == PHOTOMETRIC_MINISBLACK || colors == PHOTOMETRIC_MINISWHITE;
    const bool rgb = colors == PHOTOMETRIC_RGB && samples >= 3;
    const bool indexed = palette() && samples == 1 && bits <= 8 && format == SAMPLEFORMAT_UINT;
    const bool four = inks() && samples == 4 && type() == ElementType::u8;
    if (!gray && !rgb && !indexed && !four) {
      throw_unread(fmt::format("TIFF images of {} channels and color space {}", samples, colors));
    }
    if (samples > 64) throw_unread(fmt::format("TIFF images of {} channels", samples));
  }
};

class TiffReader final : public ImageReader, private NonCopyable {
 public:
  TiffReader(std::span<const std::byte> file, bool indices)
      : file_(file), layout_(file_), indices_(layout_.palette() && indices) {
    std::uint32_t channels = layout_.samples;
    if (layout_.inks() || (layout_.palette() && !indices_)) channels = 3;
    shape_ = {channels, layout_.height, layout_.width, layout_.type(), is_bits() && !indices};
  }

  ImageShape shape() const override { return shape_; }
  unsigned orientation() const override {
    const auto said = file_.field<std::uint16_t>(TIFFTAG_ORIENTATION, 1);
    return said >= 1 && said <= 8 ? said : 1;
  }
  bool classes() const override { return indices_ || is_bits(); }

  void read(const Box& part, unsigned, std::span<std::byte> pixels, Spare&) override {
    const std::size_t stored = std::size_t{layout_.samples} * size_of(shape_.type);
    const std::uint64_t bytes = std::uint64_t{layout_.height} * layout_.width * stored;
    if (bytes > kMaxImageBytes) file_.throw_corrupt();
    std::vector<std::byte> image(bytes);
    if (TIFFIsTiled(file_.get()) != 0) {
      read_tiles(image);
    } else {
      read_rows(image);
    }
    file_.require_whole();
    finish(image);
    copy_part(image, shape_, part, pixels);
  }

 private:
  bool is_bits() const { return layout_.bits == 1 && !layout_.palette(); }
  /// Bytes of `count` numbers of the file side by side.
  std::size_t packed(std::size_t count) const { return (count * layout_.bits + 7) / 8; }

  std::uint16_t in_one() const { return layout_.apart ? 1 : layout_.samples; }
  std::uint16_t planes() const { return layout_.apart ? layout_.samples : 1; }

  void read_rows(std::span<std::byte> image) const {
    const std::size_t row = packed(std::size_t{layout_.width} * in_one());
    const tmsize_t size = TIFFScanlineSize(file_.get());
    file_.require(size > 0 && static_cast<std::uint64_t>(size) >= row &&
                  static_cast<std::uint64_t>(size) <= kMaxImageBytes);
    std::vector<std::byte> memory(static_cast<std::size_t>(size));
    for (std::uint16_t plane = 0; plane < planes(); ++plane) {
      for (std::uint32_t y = 0; y < layout_.height; ++y) {
        file_.require(TIFFReadScanline(file_.get(), memory.data(), y, plane) == 1);
        put(memory, {0, y, layout_.width, 1}, plane, image);
      }
    }
  }

  void read_tiles(std::span<std::byte> image) const {
    const auto width = file_.field<std::uint32_t>(TIFFTAG_TILEWIDTH, 0);
    const auto height = file_.field<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
    file_.require(width > 0 && height > 0);
    const std::size_t row = packed(std::size_t{width} * in_one());
    const tmsize_t size = TIFFTileSize(file_.get());
    file_.require(size > 0 && static_cast<std::uint64_t>(size) <= kMaxImageBytes &&
                  static_cast<std::uint64_t>(size) / row >= height);
    std::vector<std::byte> memory(static_cast<std::size_t>(size));
    for (std::uint16_t plane = 0; plane < planes(); ++plane) {
      for (std::uint64_t y = 0; y < layout_.height; y += height) {
        for (std::uint64_t x = 0; x < layout_.width; x += width) {
          const auto left = static_cast<std::uint32_t>(x), top = static_cast<std::uint32_t>(y);
          file_.require(TIFFReadTile(file_.get(), memory.data(), left, top, 0, plane) >= 0);
          const Box box{left, top, std::min(width, layout_.width - left),
                        std::min(height, layout_.height - top)};
          for (std::uint32_t i = 0; i < box.height; ++i) {
            put(std::span(memory).subspan(i * row, row), {left, top + i, box.width, 1}, plane,
                image);
          }
        }
      }
    }
  }

  /// A row of the file, of one plane or of all channels, where it belongs.
  void put(std::span<const std::byte> row, const Box& place, std::uint16_t plane,
           std::span<std::byte> image) const {
    const std::size_t size = size_of(shape_.type), pixel = layout_.samples * size;
    std::byte* out = image.data() + (std::size_t{place.y} * layout_.width + place.x) * pixel;
    if (layout_.bits < 8) {
      unpack_numbers(row.data(), layout_.bits, std::span(out, place.width));
    } else if (!layout_.apart) {
      std::memcpy(out, row.data(), place.width * pixel);
    } else {
      out += plane * size;
      for (std::size_t x = 0; x < place.width; ++x)
        std::memcpy(out + x * pixel, row.data() + x * size, size);
    }
  }

  /// From what the file has to what is asked for.
  void finish(std::vector<std::byte>& image) const {
    if (layout_.palette() && !indices_) return look_up(image);
    if (layout_.white_is_zero()) turn_over(image);
    if ((layout_.bits == 2 || layout_.bits == 4) && !indices_) {
      const unsigned step = 255U / ((1U << layout_.bits) - 1);
      for (std::byte& one : image)
        one = static_cast<std::byte>(std::to_integer<unsigned>(one) * step);
    }
    if (layout_.inks()) make_rgb(image, 0);
    if (layout_.multiplied && shape_.type == ElementType::u8) divide<std::uint8_t>(image);
    if (layout_.multiplied && shape_.type == ElementType::u16) divide<std::uint16_t>(image);
  }

  void turn_over(std::span<std::byte> image) const {
    const auto most =
        layout_.bits < 8 ? static_cast<std::byte>((1U << layout_.bits) - 1) : std::byte{255};
    for (std::byte& one : image) one ^= most;
  }

  void look_up(std::vector<std::byte>& image) const {
    std::uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
    file_.require(TIFFGetField(file_.get(), TIFFTAG_COLORMAP, &red, &green, &blue) == 1);
    std::vector<std::byte> colors(3 * image.size());
    for (std::size_t i = 0; i < image.size(); ++i) {
      const auto number = std::to_integer<std::size_t>(image[i]);
      colors[3 * i] = static_cast<std::byte>(red[number] >> 8);
      colors[3 * i + 1] = static_cast<std::byte>(green[number] >> 8);
      colors[3 * i + 2] = static_cast<std::byte>(blue[number] >> 8);
    }
    image = std::move(colors);
  }

  /// Transparency stands behind one or three colors.
  template <typename T>
  void divide(std::span<std::byte> image) const {
    const std::size_t samples = layout_.samples;
    const std::size_t colors = layout_.colors == PHOTOMETRIC_RGB ? 3 : 1;
    if (samples <= colors) return;
    constexpr std::uint64_t kMost = std::numeric_limits<T>::max();
    for (std::size_t at = 0; at + samples * sizeof(T) <= image.size(); at += samples * sizeof(T)) {
      T pixel[4];
      std::memcpy(pixel, image.data() + at, (colors + 1) * sizeof(T));
      const T opacity = pixel[colors];
      for (std::size_t c = 0; c < colors; ++c) {
        pixel[c] =
            opacity == 0 ? T{0} : static_cast<T>(std::min(pixel[c] * kMost / opacity, kMost));
      }
      std::memcpy(image.data() + at, pixel, (colors + 1) * sizeof(T));
    }
  }

  TiffFile file_;
  Layout layout_;
  bool indices_;
  ImageShape shape_;
};

}  // namespace

ImageReaderPtr open_tiff(std::span<const std::byte> file, bool indices) {
  return std::make_unique<TiffReader>(file, indices);
}

}  // namespace forebay
