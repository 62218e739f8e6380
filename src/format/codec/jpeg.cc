// JPEG through libjpeg. The library reports errors by calling error_exit, which must not return:
// ours jumps back into the function that called the library. Those functions (read_header,
// read_rows, write_rows) are noexcept C in spirit: they hold no object with a destructor, and what
// they need lives in the caller's frame.
#include <fmt/format.h>

#include <cstdio>
// libjpeg's headers lean on what stands before them: jpeglib.h on FILE and size_t, jerror.h on the
// configuration that decides how the message codes are numbered.
#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <cstdlib>

#include "forebay/error.hpp"
#include "format/codec/image_formats.hpp"

namespace forebay {
namespace {

// A progressive file may repeat scans without end over a large image; real ones have about ten.
constexpr int kMaxScans = 200;

struct Trap {
  jpeg_error_mgr manager;  // first: libjpeg's pointer to it is a pointer to the trap
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void trap_error(j_common_ptr info) {
  Trap* trap = reinterpret_cast<Trap*>(info->err);
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

void set_trap(Trap& trap) {
  jpeg_std_error(&trap.manager);
  trap.manager.error_exit = trap_error;
  trap.manager.emit_message = trap_warning;
}

void limit_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<jpeg_decompress_struct*>(info);
  if (decoder->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    trap_error(info);
  }
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {
    set_trap(trap_);
    info_.err = &trap_.manager;
    progress_.progress_monitor = limit_scans;
  }
  ~Reader() { jpeg_destroy_decompress(&info_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  ImageShape header() {
    if (!read_header()) throw_corrupt();
    const bool gray = info_.jpeg_color_space == JCS_GRAYSCALE;
    if (!gray && info_.jpeg_color_space != JCS_YCbCr && info_.jpeg_color_space != JCS_RGB) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("a JPEG image of {} components that is neither gray nor RGB",
                              info_.num_components),
                  "convert it to RGB before packing");
    }
    info_.out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    return {.channels = gray ? 1U : 3U, .height = info_.image_height, .width = info_.image_width};
  }

  void rows(const ImageShape& shape, std::span<std::byte> pixels) {
    std::vector<std::byte> row(std::size_t{shape.width} * shape.channels);
    if (!read_rows(shape, row, pixels)) throw_corrupt();
  }

 private:
  bool read_header() {
    if (setjmp(trap_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool read_rows(const ImageShape& shape, std::span<std::byte> row, std::span<std::byte> pixels) {
    if (setjmp(trap_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    JSAMPROW line = reinterpret_cast<JSAMPROW>(row.data());
    while (info_.output_scanline < info_.output_height) {
      const JDIMENSION y = info_.output_scanline;
      if (jpeg_read_scanlines(&info_, &line, 1) == 1) split_row(row, shape, y, pixels);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[noreturn]] void throw_corrupt() const {
    throw Error(ErrorKind::corrupt,
                fmt::format("the JPEG image does not decode: {}", trap_.message),
                "replace the image");
  }

  std::span<const std::byte> file_;
  Trap trap_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

class Writer {
 public:
  Writer() {
    set_trap(trap_);
    info_.err = &trap_.manager;
  }
  ~Writer() {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

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

  Trap trap_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;  // grown by libjpeg with malloc
  unsigned long size_ = 0;
};

}  // namespace

ImageShape jpeg_shape(std::span<const std::byte> file) { return Reader(file).header(); }

void decode_jpeg(std::span<const std::byte> file, const ImageShape& shape,
                 std::span<std::byte> pixels) {
  Reader reader(file);
  check_image_shape(reader.header(), &shape);
  reader.rows(shape, pixels);
}

std::vector<std::byte> encode_jpeg(const ImageShape& shape, std::span<const std::byte> pixels,
                                   int quality) {
  check_encodable(shape, pixels);
  return Writer().write(shape, pixels, quality);
}

}  // namespace forebay
