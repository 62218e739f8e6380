// JPEG files of every kind that data sets have, which encode_jpeg() does not write.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include "tests/format/transform/plain_image.hpp"

namespace forebay::test {

struct JpegKind {
  int across = 2, down = 2;  ///< how many pixels share a color, 1, 2 or 4
  bool progressive = false;
  int restart = 0;  ///< blocks between restart markers
};

/// The file that `write` makes of an image of these sides: it sets how, starts and writes all rows.
template <typename Write>
Bytes written_jpeg(std::size_t width, std::size_t height, Write&& write) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  write(info);
  jpeg_finish_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(buffer);
  Bytes file(first, first + size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return file;
}

/// `image` with smooth and noisy parts survives badly, which does not matter here.
inline Bytes jpeg_of(const PlainImage& image, const JpegKind& kind, int quality = 90) {
  return written_jpeg(image.width, image.height, [&](jpeg_compress_struct& info) {
    info.input_components = static_cast<int>(image.channels);
    info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    if (image.channels == 3) {
      info.comp_info[0].h_samp_factor = kind.across;
      info.comp_info[0].v_samp_factor = kind.down;
    }
    info.restart_interval = static_cast<unsigned>(kind.restart);
    if (kind.progressive) jpeg_simple_progression(&info);
    jpeg_start_compress(&info, TRUE);
    std::vector<JSAMPLE> row(image.width * image.channels);
    for (std::size_t y = 0; y < image.height; ++y) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = static_cast<JSAMPLE>(image.at(i % image.channels, y, i / image.channels));
      }
      JSAMPROW line = row.data();
      jpeg_write_scanlines(&info, &line, 1);
    }
  });
}

/// One color, of four inks; `luma`: as brightness and color differences of them (YCCK).
inline Bytes ink_jpeg(std::uint32_t width, std::uint32_t height, const std::array<int, 4>& inks,
                      bool luma) {
  return written_jpeg(width, height, [&](jpeg_compress_struct& info) {
    info.input_components = 4;
    info.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&info);
    if (luma) jpeg_set_colorspace(&info, JCS_YCCK);
    jpeg_set_quality(&info, 98, TRUE);
    jpeg_start_compress(&info, TRUE);
    std::vector<JSAMPLE> row(4 * width);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(inks[i % 4]);
    JSAMPROW line = row.data();
    while (info.next_scanline < height) jpeg_write_scanlines(&info, &line, 1);
  });
}

}  // namespace forebay::test
