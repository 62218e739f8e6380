#include "format/codec/image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

using testing::HasSubstr;

constexpr ImageShape kColor{3, 20, 31};
constexpr ImageShape kGray{1, 17, 9};

Bytes decoded(const Bytes& file) {
  const ImageShape shape = image_shape(file);
  Bytes pixels(shape.bytes());
  decode_image(file, shape, pixels);
  return pixels;
}

TEST(Image, PngKeepsEveryPixel) {
  for (const ImageShape& shape : {kColor, kGray, ImageShape{1, 1, 1}, ImageShape{3, 1, 400}}) {
    const Bytes pixels = gradient(shape);
    const Bytes file = encode_png(shape, pixels);
    EXPECT_EQ(image_format(file), ImageFormat::png);
    EXPECT_EQ(image_shape(file), shape);
    EXPECT_EQ(decoded(file), pixels);
  }
}

TEST(Image, JpegKeepsShapeAndNearlyThePixels) {
  for (const ImageShape& shape : {kColor, kGray}) {
    const Bytes pixels(shape.bytes(), std::byte{120});
    const Bytes file = encode_jpeg(shape, pixels, 95);
    EXPECT_EQ(image_format(file), ImageFormat::jpeg);
    EXPECT_EQ(image_shape(file), shape);
    for (const std::byte pixel : decoded(file)) EXPECT_NEAR(std::to_integer<int>(pixel), 120, 2);
  }
}

TEST(Image, ColorsStayInTheirPlanes) {
  constexpr ImageShape shape{3, 8, 8};
  Bytes pixels(shape.bytes());
  std::fill_n(pixels.begin(), 64, std::byte{255});  // all red
  EXPECT_EQ(decoded(encode_png(shape, pixels)), pixels);
  const Bytes jpeg = decoded(encode_jpeg(shape, pixels, 95));
  EXPECT_GT(std::to_integer<int>(jpeg[0]), 245);
  EXPECT_LT(std::to_integer<int>(jpeg[64]), 10);
  EXPECT_LT(std::to_integer<int>(jpeg[128]), 10);
}

// Writes what encode_png never does, through libpng's simplified interface.
Bytes foreign_png(png_uint_32 format, png_uint_32 side, const void* pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = side;
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels, 0, nullptr);
  Bytes file(size);
  png_image_write_to_memory(&image, file.data(), &size, 0, pixels, 0, nullptr);
  file.resize(size);
  return file;
}

TEST(Image, TransparencyIsAChannel) {
  const std::vector<unsigned char> rgba{10, 20, 30, 0, 11, 21, 31, 255,
                                        12, 22, 32, 9, 13, 23, 33, 128};
  const Bytes file = foreign_png(PNG_FORMAT_RGBA, 2, rgba.data());
  EXPECT_EQ(image_shape(file), (ImageShape{4, 2, 2}));
  const Bytes pixels = decoded(file);
  EXPECT_EQ(std::to_integer<int>(pixels[0]), 10);
  EXPECT_EQ(std::to_integer<int>(pixels[4]), 20);
  EXPECT_EQ(std::to_integer<int>(pixels[11]), 33);
  EXPECT_EQ(std::to_integer<int>(pixels[14]), 9);
}

TEST(Image, ShapeMismatchNamesBothShapes) {
  const Bytes file = encode_png(kColor, gradient(kColor));
  Bytes pixels(kGray.bytes());
  const Error error = error_from([&] { decode_image(file, kGray, pixels); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("3x20x31"));
  EXPECT_THAT(error.what(), HasSubstr("1x17x9"));
}

TEST(Image, EveryTruncationIsAnErrorNotAGrayImage) {
  const Bytes pixels = gradient(kColor);
  for (const Bytes& file : {encode_png(kColor, pixels), encode_jpeg(kColor, pixels, 90)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(error_from([&] { decoded(cut); }).kind(), ErrorKind::corrupt) << size;
    }
  }
}

TEST(Image, DamagedPngIsAnError) {
  Bytes file = encode_png(kColor, gradient(kColor));
  file[file.size() / 2] ^= std::byte{0x40};
  EXPECT_EQ(error_from([&] { decoded(file); }).kind(), ErrorKind::corrupt);
}

TEST(Image, DecompressionBombsAreRefusedByTheirHeader) {
  Bytes jpeg = encode_jpeg(kGray, gradient(kGray), 90);
  for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xff} && jpeg[i + 1] == std::byte{0xc0}) {
      for (std::size_t side = i + 5; side < i + 9; ++side) jpeg[side] = std::byte{0xfe};
    }
  }
  EXPECT_THAT(error_from([&] { image_shape(jpeg); }).what(), HasSubstr("outside the limits"));

  // A PNG header with its checksum: 65,536 x 65,536 gray pixels.
  const unsigned char header[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
                                  13,   'I', 'H', 'D', 'R',  0,    1,    0,    0, 0, 1,
                                  0,    0,   8,   0,   0,    0,    0,    0,    0, 0, 0};
  Bytes png(sizeof(header));
  std::memcpy(png.data(), header, sizeof(header));
  EXPECT_EQ(error_from([&] { image_shape(png); }).kind(), ErrorKind::corrupt);
}

TEST(Image, EncodersRefuseWhatAnImageCannotBe) {
  EXPECT_EQ(error_from([] { encode_png({5, 4, 4}, Bytes(80)); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] { encode_jpeg({3, 4, 4}, Bytes(47), 90); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] { encode_jpeg({1, 0, 4}, {}, 90); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] {
              encode_jpeg({1, 1, 70000}, Bytes(70000), 90);
            }).kind(),
            ErrorKind::usage);
}

}  // namespace
}  // namespace forebay::test
