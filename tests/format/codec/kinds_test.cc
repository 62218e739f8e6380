// Kinds of image files beside JPEG and PNG, and what is damaged of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef FOREBAY_TEST_TIFF
#include <tiffio.h>
#endif

#include <random>

#include "forebay/transform.hpp"
#include "format/codec/codecs.hpp"
#include "tests/format/codec/image_files.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Kind {
  const char* name;
  ImageFormat format;
  const char* hex;
  const char* schema;
};

// Those whose libraries are there are all that are read.
std::vector<Kind> read_kinds() {
  std::vector<Kind> kinds{{"BMP", ImageFormat::bmp, kBmp, "image:u8[3x2x4]"}};
#ifdef FOREBAY_TEST_GIF
  kinds.push_back({"GIF", ImageFormat::gif, kGif, "image:u8[4x2x4]"});
#endif
#ifdef FOREBAY_TEST_WEBP
  kinds.push_back({"WebP", ImageFormat::webp, kWebp, "image:u8[4x4x2]"});
#endif
#ifdef FOREBAY_TEST_TIFF
  kinds.push_back({"TIFF", ImageFormat::tiff, kTiff, "image:u8[3x4x2]"});
  kinds.push_back({"TIFF", ImageFormat::tiff, kDeepTiff, "image:u16[1x2x4]"});
#endif
  return kinds;
}

std::vector<int> pixels(const Bytes& file, const ImageChoices& how = {}) {
  std::vector<int> numbers;
  for (const std::byte b : decode_image(file, how).pixels)
    numbers.push_back(std::to_integer<int>(b));
  return numbers;
}

TEST(ImageKinds, AreRecognisedAndRead) {
  for (const Kind& kind : read_kinds()) {
    const Bytes file = from_hex(kind.hex);
    EXPECT_EQ(image_format(file), kind.format) << kind.name;
    const auto codec = make_codec({}, file);
    EXPECT_EQ(codec->name(), "image");
    EXPECT_EQ(to_string(codec->schema()), kind.schema) << kind.name;
    EXPECT_EQ(decode(*codec, file).fields[0], decode_image(file).pixels);
  }
  EXPECT_THAT(pixels(from_hex(kBmp), {.indices = true}), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(ImageKinds, PartsAreThoseOfTheWholeImage) {
  const Transform whole = Transform::parse("rgb"), part = Transform::parse("crop=1x2,rgb");
  for (const Kind& kind : read_kinds()) {
    const Bytes file = from_hex(kind.hex);
    const Field all = whole.output_of_file(file);
    Bytes image(all.bytes()), expected(part.output(all).bytes()), found(expected.size());
    whole.apply_to_file(file, 0, image);
    part.apply(all, image, 0, expected);
    part.apply_to_file(file, 0, found);
    EXPECT_EQ(found, expected) << kind.name;
  }
}

TEST(ImageKinds, EveryTruncationIsAnError) {
  for (const Kind& kind : read_kinds()) {
    const Bytes file = from_hex(kind.hex);
    const Bytes expected = decode_image(file).pixels;
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      try {
        EXPECT_EQ(decode_image(cut).pixels, expected) << kind.name << " " << size;
        EXPECT_GE(size + 30, file.size()) << kind.name;  // what ends a file may be missed
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::corrupt) << kind.name << " " << size;
      }
    }
  }
}

TEST(ImageKinds, DamageEndsInAResultOrAnError) {
  std::mt19937_64 random(5);
  for (const Kind& kind : read_kinds()) {
    for (int round = 0; round < random_cases(2000); ++round) {
      Bytes file = from_hex(kind.hex);
      for (int flips = 0; flips < 3; ++flips) {
        file[random() % file.size()] ^= static_cast<std::byte>(1U << random() % 8);
      }
      try {
        if (image_shape(file).bytes() < 1 << 20) pixels(file);
      } catch (const Error& error) {
        EXPECT_EQ(std::strchr(error.what(), '\n'), nullptr);
      }
    }
  }
}

TEST(ImageKinds, WhatIsNotReadIsNamed) {
  const auto refusal = [](std::string_view file) {
    return std::string(error_from([&] { codec_for(file, "image"); }).what());
  };
  EXPECT_THAT(refusal(std::string_view("\0\0\0\x20"
                                       "ftypavif",
                                       12)),
              HasSubstr("AVIF"));
  EXPECT_THAT(refusal("\xff\x0a...."), HasSubstr("JPEG XL"));
  EXPECT_THAT(refusal("P6\n4 2\n255\n"), HasSubstr("--codec bytes"));
  EXPECT_THAT(refusal("just a text"), HasSubstr("neither JPEG, PNG"));
  EXPECT_EQ(image_format(bytes_of("BMW builds cars and motorcycles")), ImageFormat::none);
#ifndef FOREBAY_TEST_WEBP
  EXPECT_THAT(error_from([] { image_shape(from_hex(kWebp)); }).what(), HasSubstr("libwebp-dev"));
#endif
#ifndef FOREBAY_TEST_TIFF
  EXPECT_THAT(error_from([] { image_shape(from_hex(kTiff)); }).what(), HasSubstr("libtiff-dev"));
#endif
#ifndef FOREBAY_TEST_GIF
  EXPECT_THAT(error_from([] { image_shape(from_hex(kGif)); }).what(), HasSubstr("libgif-dev"));
#endif
}

TEST(ImageKinds, ABmpWhoseHeaderLiesIsCorrupt) {
  const auto with = [](std::size_t at, std::uint32_t value) {
    Bytes file = from_hex(kBmp);
    std::memcpy(file.data() + at, &value, sizeof value);
    return error_from([&] { decode_image(file); }).kind();
  };
  EXPECT_EQ(with(10, 0xffffffff), ErrorKind::corrupt) << "where pixels begin";
  EXPECT_EQ(with(18, 0), ErrorKind::corrupt) << "width";
  EXPECT_EQ(with(18, 1 << 20), ErrorKind::corrupt);
  EXPECT_EQ(with(22, 0x80000000), ErrorKind::corrupt) << "height";
  EXPECT_EQ(with(22, 0x7fffffff), ErrorKind::corrupt);
  EXPECT_EQ(with(28, 7), ErrorKind::unsupported) << "bits";
  EXPECT_EQ(with(30, 4), ErrorKind::unsupported) << "compression";
}

#ifdef FOREBAY_TEST_TIFF

struct TiffKind {
  std::uint16_t samples = 1, bits = 8, colors = PHOTOMETRIC_MINISBLACK;
  bool apart = false, tiled = false;
  int extra = -1;
};

/// An image of 37 columns and 21 rows: row after row, numbers of a pixel side by side.
Bytes tiff_of(const TiffKind& kind, const Bytes& image) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.tif");
  constexpr std::uint32_t kWidth = 37, kHeight = 21, kTile = 16;
  TIFF* tiff = TIFFOpen(path.c_str(), "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, kWidth);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, kHeight);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, kind.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, kind.samples);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, kind.colors);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG,
               kind.apart ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
  if (kind.extra >= 0) {
    const auto extra = static_cast<std::uint16_t>(kind.extra);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &extra);
  }
  if (kind.tiled) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, kTile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, kTile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
  }
  const std::size_t size = kind.bits / 8, pixel = kind.samples * size;
  const std::size_t planes = kind.apart ? kind.samples : 1, part = kind.apart ? size : pixel;
  const std::uint32_t side = kind.tiled ? kTile : kWidth, step = kind.tiled ? kTile : 1;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::uint32_t top = 0; top < kHeight; top += step) {
      for (std::uint32_t left = 0; left < kWidth; left += side) {
        Bytes piece(std::size_t{side} * step * part);
        for (std::uint32_t y = top; y < std::min(top + step, kHeight); ++y) {
          for (std::uint32_t x = left; x < std::min(left + side, kWidth); ++x) {
            std::memcpy(piece.data() + ((y - top) * side + x - left) * part,
                        image.data() + (y * kWidth + x) * pixel + plane * size, part);
          }
        }
        const auto sample = static_cast<std::uint16_t>(plane);
        kind.tiled ? TIFFWriteTile(tiff, piece.data(), left, top, 0, sample)
                   : TIFFWriteScanline(tiff, piece.data(), top, sample);
      }
    }
  }
  TIFFClose(tiff);
  std::ifstream file(path, std::ios::binary);
  return to_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
}

/// The same in planes.
Bytes planes_of(const Bytes& image, std::size_t samples, std::size_t size) {
  Bytes planes;
  for (std::size_t c = 0; c < samples; ++c) {
    for (std::size_t i = c * size; i < image.size(); i += samples * size) {
      planes.insert(planes.end(), image.begin() + static_cast<std::ptrdiff_t>(i),
                    image.begin() + static_cast<std::ptrdiff_t>(i + size));
    }
  }
  return planes;
}

TEST(Tiff, StripsTilesAndPlanesAreTheSameImage) {
  for (const std::uint16_t samples : std::initializer_list<std::uint16_t>{1, 3, 7}) {
    for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{8, 16}) {
      const std::size_t size = bits / 8;
      const Bytes image = gradient({1, 21, static_cast<std::uint32_t>(37 * samples * size)});
      for (const bool apart : {false, true}) {
        for (const bool tiled : {false, true}) {
          TiffKind kind{.samples = samples, .bits = bits, .apart = apart, .tiled = tiled};
          if (samples == 3) kind.colors = PHOTOMETRIC_RGB;
          const Image found = decode_image(tiff_of(kind, image));
          EXPECT_EQ(found.shape,
                    (ImageShape{samples, 21, 37, bits == 8 ? ElementType::u8 : ElementType::u16}));
          EXPECT_EQ(found.pixels, planes_of(image, samples, size))
              << samples << " " << bits << " " << apart << " " << tiled;
        }
      }
    }
  }
}

TEST(Tiff, WhiteMayBeZeroAndColorsMultiplied) {
  Bytes gray = gradient({1, 21, 37});
  const Bytes over = decode_image(tiff_of({.colors = PHOTOMETRIC_MINISWHITE}, gray)).pixels;
  for (std::byte& one : gray) one = ~one;
  EXPECT_EQ(over, gray);
  Bytes image(4 * 21 * 37, std::byte{0});
  for (std::size_t i = 0; i < 4; ++i) image[i] = std::byte{100};
  for (std::size_t i = 4; i < 8; ++i) image[i] = static_cast<std::byte>(i == 7 ? 200 : 50);
  const TiffKind kind{.samples = 4, .colors = PHOTOMETRIC_RGB, .extra = EXTRASAMPLE_ASSOCALPHA};
  const Bytes found = decode_image(tiff_of(kind, image)).pixels;
  EXPECT_EQ(std::to_integer<int>(found[0]), 255);
  EXPECT_EQ(std::to_integer<int>(found[1]), 63);  // 50 * 255 / 200
  EXPECT_EQ(std::to_integer<int>(found[3 * 21 * 37 + 1]), 200);
}

#endif

}  // namespace
}  // namespace forebay::test
