// PNG through libpng. As in jpeg.cc, the functions that libpng may jump out of (read_header,
// read_rows, write_rows) hold no object with a destructor.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

constexpr png_uint_32 kMaxSide = 1U << 20;
// A compressed text or color chunk may unpack to anything; none of it is used.
constexpr png_alloc_size_t kMaxChunkBytes = 1U << 24;

struct Trap {
  std::jmp_buf jump;
  char message[160] = "";
};

[[noreturn]] void trap_error(png_structp png, png_const_charp message) {
  Trap* trap = static_cast<Trap*>(png_get_error_ptr(png));
  std::strncpy(trap->message, message, sizeof(trap->message) - 1);
  std::longjmp(trap->jump, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

// Numbers of 16 bits lie with their high byte first in the file.
constexpr bool kSwaps = std::endian::native == std::endian::little;

class PngReader final : public WholeReader, private NonCopyable {
 public:
  PngReader(std::span<const std::byte> file, bool indices)
      : file_(file),
        rest_(file),
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &trap_, trap_error, ignore_warning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {
    if (info_ != nullptr && read_header()) {
      set_shape(indices);
      return;
    }
    png_destroy_read_struct(&png_, &info_, nullptr);
    throw_corrupt();
  }
  ~PngReader() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  ImageShape shape() const override { return shape_; }
  unsigned orientation() const override { return png_orientation(file_); }
  bool classes() const override { return indices_ || bits_; }

 private:
  static void take(png_structp png, png_bytep out, std::size_t size) {
    auto& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest_;
    if (size > rest.size()) png_error(png, "the file ends too early");
    std::memcpy(out, rest.data(), size);
    rest = rest.subspan(size);
  }

  /// Transparency may be a channel, or one for each color of a palette, or one color.
  void set_shape(bool indices) {
    const unsigned type = png_get_color_type(png_, info_), bits = png_get_bit_depth(png_, info_);
    const bool palette = type == PNG_COLOR_TYPE_PALETTE;
    const bool transparent =
        (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    indices_ = palette && indices;
    bits_ = !palette && bits == 1 && !transparent;
    const bool color = !indices_ && (type & PNG_COLOR_MASK_COLOR) != 0;
    shape_ = {.channels = (color ? 3U : 1U) + (transparent && !indices_ ? 1U : 0U),
              .height = png_get_image_height(png_, info_),
              .width = png_get_image_width(png_, info_),
              .type = bits == 16 ? ElementType::u16 : ElementType::u8,
              .bits = bits_ && !indices};
  }

  std::size_t stride() const {
    return std::size_t{shape_.width} * shape_.channels * size_of(shape_.type);
  }

  // Interlaced files deliver a row in several passes, so all rows must be kept.
  void read_image(std::span<std::byte> image) override {
    lines_.resize(shape_.height);
    for (std::size_t y = 0; y < lines_.size(); ++y) {
      lines_[y] = reinterpret_cast<png_bytep>(image.data() + y * stride());
    }
    if (!read_rows()) throw_corrupt();
  }

  bool read_header() {
    if (setjmp(trap_.jump) != 0) return false;
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    png_set_read_fn(png_, this, take);
    png_read_info(png_, info_);
    return true;
  }

  bool read_rows() {
    if (setjmp(trap_.jump) != 0) return false;
    if (classes()) {
      png_set_packing(png_);  // a byte for each, the number as it is
    } else {
      png_set_expand(png_);
    }
    if (kSwaps && shape_.type == ElementType::u16) png_set_swap(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != stride()) png_error(png_, "rows of an unexpected size");
    png_read_image(png_, lines_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  [[noreturn]] void throw_corrupt() const {
    throw Error(ErrorKind::corrupt, fmt::format("the PNG image does not decode: {}", trap_.message),
                "replace the image");
  }

  Trap trap_;
  ImageShape shape_;
  bool indices_ = false;  ///< numbers of a palette's colors
  bool bits_ = false;     ///< yes and no
  std::vector<png_bytep> lines_;
  std::span<const std::byte> file_, rest_;
  png_structp png_;
  png_infop info_;
};

class Writer : private NonCopyable {
 public:
  Writer()
      : png_(png_create_write_struct(PNG_LIBPNG_VER_STRING, &trap_, trap_error, ignore_warning)),
        info_(png_ == nullptr ? nullptr : png_create_info_struct(png_)) {}
  ~Writer() { png_destroy_write_struct(&png_, &info_); }

  std::vector<std::byte> write(const ImageShape& shape, std::span<const std::byte> pixels) {
    std::vector<std::byte> row(pixels.size() / shape.height);
    if (info_ == nullptr || !write_rows(shape, pixels, row)) {
      throw Error(ErrorKind::usage, fmt::format("a {} image cannot be written as PNG: {}",
                                                to_string(shape), trap_.message));
    }
    return std::move(file_);
  }

 private:
  // Growing the file may throw, which must not pass through libpng's frames.
  static void append(png_structp png, png_bytep data, std::size_t size) noexcept {
    auto& file = static_cast<Writer*>(png_get_io_ptr(png))->file_;
    const auto* first = reinterpret_cast<const std::byte*>(data);
    file.insert(file.end(), first, first + size);
  }
  static void flush(png_structp) {}

  bool write_rows(const ImageShape& shape, std::span<const std::byte> pixels,
                  std::span<std::byte> row) {
    if (setjmp(trap_.jump) != 0) return false;
    png_set_write_fn(png_, this, append, flush);
    const int bits = shape.bits ? 1 : static_cast<int>(8 * size_of(shape.type));
    const int type = (shape.channels >= 3 ? PNG_COLOR_MASK_COLOR : 0) |
                     (shape.channels % 2 == 0 ? PNG_COLOR_MASK_ALPHA : 0);
    png_set_IHDR(png_, info_, shape.width, shape.height, bits, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    if (shape.bits) png_set_packing(png_);
    if (kSwaps && bits == 16) png_set_swap(png_);
    for (std::uint32_t y = 0; y < shape.height; ++y) {
      join_row(pixels, shape, y, row);
      png_write_row(png_, reinterpret_cast<png_const_bytep>(row.data()));
    }
    png_write_end(png_, info_);
    return true;
  }

  Trap trap_;
  std::vector<std::byte> file_;
  png_structp png_;
  png_infop info_;
};

}  // namespace

ImageReaderPtr open_png(std::span<const std::byte> file, bool indices) {
  return std::make_unique<PngReader>(file, indices);
}

std::vector<std::byte> encode_png(const ImageShape& shape, std::span<const std::byte> pixels) {
  const bool fits = (shape.type == ElementType::u8 || shape.type == ElementType::u16) &&
                    shape.channels >= 1 && shape.channels <= 4;
  check_encodable(shape, pixels, fits, "PNG takes 1 to 4 channels of u8 or u16");
  return Writer().write(shape, pixels);
}

}  // namespace forebay
