// JPEG through libjpeg. It calls error_exit, which must not return: ours jumps back into the
// function that called the library. Those functions (read_header, read_rows, write_rows) are
// noexcept C in spirit: they hold no object with a destructor, and what they need lives in the
// caller's frame.
//
// libjpeg-turbo decodes parts of an image: rows above are skipped (their coefficients are still
// parsed, for later ones build on them), and of each row only the blocks that the part touches are
// transformed. At the edges of what is transformed, colors are not interpolated as they are inside,
// so one block more is asked for on each side, and cut off.
#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// jpeglib.h leans on what stands before it: FILE and size_t.
#include <jpeglib.h>
// The configuration decides how the message codes are numbered; jerror.h leans on it.
#include <jerror.h>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

struct JpegTrap {
  jpeg_error_mgr manager;  // first: libjpeg's pointer to it is a pointer to the trap
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

// A progressive file may repeat scans without end over a large image; real ones have about ten.
constexpr int kMaxScans = 200;

[[noreturn]] void trap_error(j_common_ptr info) {
  JpegTrap* trap = reinterpret_cast<JpegTrap*>(info->err);
  trap->manager.format_message(info, trap->message);
  std::longjmp(trap->jump, 1);
}

// Warnings after which pixels are made up are errors for us; the others (stray bytes between
// markers, odd headers) are common in real data sets and harm nothing.
void trap_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      trap_error(info);
    default:
      ++info->err->num_warnings;
  }
}

/// Makes errors, and warnings after which pixels are made up, jump to `trap.jump`.
void set_trap(JpegTrap& trap) {
  jpeg_std_error(&trap.manager);
  trap.manager.error_exit = trap_error;
  trap.manager.emit_message = trap_warning;
}

/// A progress monitor that ends files which repeat their scans without end.
void limit_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<jpeg_decompress_struct*>(info);
  if (decoder->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    trap_error(info);
  }
}

#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000
constexpr bool kReadsParts = true;
#else
constexpr bool kReadsParts = false;
void jpeg_crop_scanline(j_decompress_ptr, JDIMENSION*, JDIMENSION*) {}
JDIMENSION jpeg_skip_scanlines(j_decompress_ptr, JDIMENSION) { return 0; }
#endif

// The widest block of any file: 8 pixels at a sampling of 4.
constexpr std::uint32_t kWidestBlock = 32;

class JpegReader final : public ImageReader, private NonCopyable {
 public:
  explicit JpegReader(std::span<const std::byte> file) : file_(file) {
    set_trap(trap_);
    info_.err = &trap_.manager;
    progress_.progress_monitor = limit_scans;
    read_shape();
  }
  ~JpegReader() override { jpeg_destroy_decompress(&info_); }

  ImageShape shape() const override { return shape_; }
  unsigned orientation() const override { return jpeg_orientation(file_); }
  unsigned most_shrink() const override { return keeps_colors() ? 8 : 1; }

  void read(const Box& part, unsigned shrink, std::span<std::byte> pixels, Spare& spare) override {
    const auto row = room_in(spare, row_bytes());
    info_.scale_num = 1;
    info_.scale_denom = shrink;
    if (!read_rows(part, row, pixels, false)) throw_corrupt();
  }

  void read_planes(std::span<std::byte> pixels) override {
    std::vector<std::byte> row(row_bytes());
    if (!read_rows({0, 0, shape_.width, shape_.height}, row, pixels, true)) throw_corrupt();
  }

 private:
  std::size_t row_bytes() const {
    return std::size_t{shape_.width} * (inks_ ? 4 : shape_.channels);
  }

  void read_shape() {
    // A destructor does not run for what its constructor has not finished.
    try {
      if (!read_header()) throw_corrupt();
      const J_COLOR_SPACE space = info_.jpeg_color_space;
      const bool gray = space == JCS_GRAYSCALE;
      inks_ = space == JCS_CMYK || space == JCS_YCCK;
      if (!gray && !inks_ && space != JCS_YCbCr && space != JCS_RGB) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("a JPEG image of {} components that is neither gray, RGB nor CMYK",
                                info_.num_components),
                    "convert it to RGB before packing");
      }
      info_.out_color_space = gray ? JCS_GRAYSCALE : inks_ ? JCS_CMYK : JCS_RGB;
      shape_ = {
          .channels = gray ? 1U : 3U, .height = info_.image_height, .width = info_.image_width};
    } catch (...) {
      jpeg_destroy_decompress(&info_);
      throw;
    }
  }

  /// Where colors have fewer pixels, libjpeg shrinks them less, but only both ways at once: those
  /// of 4:2:2 and 4:1:1 would lose what the full size has.
  bool keeps_colors() const {
    for (int i = 0; i < info_.num_components; ++i) {
      const auto& component = info_.comp_info[i];
      if (info_.max_h_samp_factor * component.v_samp_factor !=
          info_.max_v_samp_factor * component.h_samp_factor) {
        return false;
      }
    }
    return true;
  }

  bool read_header() {
    if (setjmp(trap_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool read_rows(const Box& part, std::span<std::byte> row, std::span<std::byte> pixels,
                 bool planes) {
    if (setjmp(trap_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    const JDIMENSION first = choose_columns(part);
    if (kReadsParts && part.y > 0) jpeg_skip_scanlines(&info_, part.y);
    const std::size_t stride = std::size_t{part.width} * shape_.channels;
    const std::byte* begin = row.data() + std::size_t{part.x - first} * shape_.channels;
    JSAMPROW line = reinterpret_cast<JSAMPROW>(row.data());
    while (info_.output_scanline < part.y + part.height) {
      const JDIMENSION y = info_.output_scanline;
      if (jpeg_read_scanlines(&info_, &line, 1) != 1 || y < part.y) continue;
      // Stored from their end, as Adobe's programs do and all readers take for granted.
      if (inks_) make_rgb(row.first(std::size_t{4} * info_.output_width), 255);
      if (planes) {
        split_row(row, shape_, y, pixels);
      } else {
        std::memcpy(pixels.data() + (y - part.y) * stride, begin, stride);
      }
    }
    // What is behind the last row says whether that was whole.
    if (info_.output_scanline == info_.output_height) jpeg_finish_decompress(&info_);
    return true;
  }

  /// Of the rows that are decoded from now on; returns the first column that they have.
  JDIMENSION choose_columns(const Box& part) {
    if (!kReadsParts || part.width == info_.output_width) return 0;
    JDIMENSION first = part.x > kWidestBlock ? part.x - kWidestBlock : 0;
    const JDIMENSION end = std::min(part.x + part.width + kWidestBlock, info_.output_width);
    JDIMENSION width = end - first;
    if (width == info_.output_width) return 0;
    jpeg_crop_scanline(&info_, &first, &width);
    return first;
  }

  [[noreturn]] void throw_corrupt() const {
    throw Error(ErrorKind::corrupt,
                fmt::format("the JPEG image does not decode: {}", trap_.message),
                "replace the image");
  }

  std::span<const std::byte> file_;
  ImageShape shape_;
  bool inks_ = false;
  JpegTrap trap_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

class JpegWriter : private NonCopyable {
 public:
  JpegWriter() {
    set_trap(trap_);
    info_.err = &trap_.manager;
  }
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }

  std::vector<std::byte> write(const ImageShape& shape, std::span<const std::byte> pixels,
                               int quality) {
    std::vector<std::byte> row(std::size_t{shape.width} * shape.channels);
    if (!write_rows(shape, pixels, quality, row)) {
      throw Error(ErrorKind::usage, fmt::format("a {} image cannot be written as JPEG: {}",
                                                to_string(shape), trap_.message));
    }
    const auto* first = reinterpret_cast<const std::byte*>(buffer_);
    return {first, first + size_};
  }

 private:
  bool write_rows(const ImageShape& shape, std::span<const std::byte> pixels, int quality,
                  std::span<std::byte> row) {
    if (setjmp(trap_.jump) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &buffer_, &size_);
    info_.image_width = shape.width;
    info_.image_height = shape.height;
    info_.input_components = static_cast<int>(shape.channels);
    info_.in_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    JSAMPROW line = reinterpret_cast<JSAMPROW>(row.data());
    while (info_.next_scanline < info_.image_height) {
      join_row(pixels, shape, info_.next_scanline, row);
      jpeg_write_scanlines(&info_, &line, 1);
    }
    jpeg_finish_compress(&info_);
    return true;
  }

  JpegTrap trap_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;  // grown by libjpeg with malloc
  unsigned long size_ = 0;
};

}  // namespace

ImageReaderPtr open_jpeg(std::span<const std::byte> file, bool) {
  return std::make_unique<JpegReader>(file);
}

std::vector<std::byte> encode_jpeg(const ImageShape& shape, std::span<const std::byte> pixels,
                                   int quality) {
  const bool fits = shape.type == ElementType::u8 && (shape.channels == 1 || shape.channels == 3);
  check_encodable(shape, pixels, fits, "JPEG takes 1 or 3 channels of bytes");
  return JpegWriter().write(shape, pixels, quality);
}

}  // namespace forebay
