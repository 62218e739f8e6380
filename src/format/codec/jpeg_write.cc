// Writing JPEG through libjpeg; see jpeg_trap.hpp for what write_rows must not hold.
#include <fmt/format.h>

#include <cstdlib>

#include "forebay/error.hpp"
#include "format/codec/image_formats.hpp"
#include "format/codec/jpeg_trap.hpp"

namespace forebay {
namespace {

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

  JpegTrap trap_{};
  jpeg_compress_struct info_{};
  unsigned char* buffer_ = nullptr;  // grown by libjpeg with malloc
  unsigned long size_ = 0;
};

}  // namespace

std::vector<std::byte> encode_jpeg(const ImageShape& shape, std::span<const std::byte> pixels,
                                   int quality) {
  check_encodable(shape, pixels);
  return Writer().write(shape, pixels, quality);
}

}  // namespace forebay
