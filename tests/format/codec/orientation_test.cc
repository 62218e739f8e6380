// Images stand upright as EXIF says, whole and in parts; what is damaged there says nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "forebay/transform.hpp"
#include "format/codec/image_reader.hpp"
#include "tests/format/codec/image_files.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr ImageChoices kStored{.upright = false};

/// Two rows of three gray pixels, as Pillow's exif_transpose turns them.
constexpr const char* kTurned[] = {"ABC/DEF",  "CBA/FED",  "FED/CBA",  "DEF/ABC",
                                   "AD/BE/CF", "DA/EB/FC", "FC/EB/DA", "CF/BE/AD"};

std::string rows_of(const Image& image) {
  std::string text;
  for (std::size_t y = 0; y < image.shape.height; ++y) {
    if (y > 0) text += '/';
    for (std::size_t x = 0; x < image.shape.width; ++x) {
      text += static_cast<char>(image.pixels[y * image.shape.width + x]);
    }
  }
  return text;
}

Bytes letters() { return encode_png({1, 2, 3}, to_bytes("ABCDEF")); }

TEST(Orientation, AllEightAreTurnedUpright) {
  for (unsigned n = 1; n <= 8; ++n) {
    for (const bool big_endian : {false, true}) {
      const Bytes file = with_chunk(letters(), "eXIf", exif_text(n, big_endian));
      EXPECT_EQ(rows_of(decode_image(file)), kTurned[n - 1]) << n;
      EXPECT_EQ(rows_of(decode_image(file, kStored)), kTurned[0]) << n;
    }
  }
}

TEST(Orientation, IsReadFromJpegFiles) {
  const ImageShape shape{3, 16, 24};
  const Bytes jpeg = encode_jpeg(shape, gradient(shape), 90);
  const Image stored = decode_image(jpeg);
  for (unsigned n = 1; n <= 8; ++n) {
    for (const bool big_endian : {false, true}) {
      const Bytes file = with_exif(jpeg, exif_text(n, big_endian));
      EXPECT_EQ(jpeg_orientation(file), n);
      EXPECT_EQ(image_shape(file), n >= 5 ? (ImageShape{3, 24, 16}) : shape);
      EXPECT_EQ(decode_image(file, kStored).pixels, stored.pixels);
    }
  }
  EXPECT_EQ(jpeg_orientation(with_exif(jpeg, exif_text(6, true, 4))), 6U) << "four bytes wide";
  EXPECT_EQ(jpeg_orientation(jpeg), 1U);
}

TEST(Orientation, XmpSaysItWhereExifDoesNot) {
  const ImageShape shape{1, 8, 8};
  const Bytes jpeg = encode_jpeg(shape, gradient(shape), 90);
  const std::string xmp = std::string("http://ns.adobe.com/xap/1.0/\0", 29) + xmp_text('8');
  EXPECT_EQ(jpeg_orientation(with_app1(jpeg, xmp)), 8U);
  EXPECT_EQ(jpeg_orientation(with_app1(with_exif(jpeg, exif_text(3, false)), xmp)), 3U);
  const std::string text = std::string("XML:com.adobe.xmp\0\0\0\0\0", 22) + xmp_text('5');
  EXPECT_EQ(rows_of(decode_image(with_chunk(letters(), "iTXt", text))), kTurned[4]);
  EXPECT_THAT(xmp_orientation("<tiff:Orientation>4</tiff:Orientation>"), Optional(4U));
  EXPECT_EQ(xmp_orientation("tiff:Orientation=\""), std::nullopt);
  EXPECT_EQ(xmp_orientation("tiff:Orientation tiff:Orientation>x"), std::nullopt);
}

// As ImageMagick writes it: lines of 36 bytes as digits, compressed.
std::string packed_profile(const std::string& exif) {
  std::string text = "\nexif\n" + std::string(8 - std::to_string(exif.size()).size(), ' ') +
                     std::to_string(exif.size());
  constexpr const char* kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < exif.size(); ++i) {
    const auto byte = static_cast<unsigned char>(exif[i]);
    if (i % 36 == 0) text += '\n';
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  std::string packed(compressBound(text.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  return std::string("Raw profile type exif\0\0", 23) + packed.substr(0, size);
}

TEST(Orientation, IsReadFromImageMagicksText) {
  const std::string exif =
      std::string("Exif\0\0", 6) + exif_text(8, true) + std::string(200000, 'x');
  const Bytes file = with_chunk(letters(), "zTXt", packed_profile(exif));
  EXPECT_EQ(rows_of(decode_image(file)), kTurned[7]);
  EXPECT_EQ(png_orientation(with_chunk(file, "eXIf", exif_text(2, true))), 2U);
  EXPECT_EQ(png_orientation(with_chunk(letters(), "zTXt", packed_profile(exif).substr(0, 60))), 1U);
  EXPECT_EQ(png_orientation(with_chunk(letters(), "zTXt", packed_profile("").substr(0, 30))), 1U);
}

TEST(Orientation, DamageSaysNothing) {
  const std::string exif = exif_text(6, false);
  for (std::size_t size = 0; size < exif.size() - 6; ++size) {
    EXPECT_EQ(exif_orientation(bytes_of(std::string_view(exif).substr(0, size))), std::nullopt);
  }
  for (const std::uint64_t other : {0, 9, 255, 65535}) {
    EXPECT_THAT(exif_orientation(bytes_of(exif_text(other, false))), Optional(1U)) << other;
  }
  EXPECT_EQ(exif_orientation(bytes_of(exif_text(6, false, 2))), std::nullopt) << "a text";
  std::string far = exif;
  far.replace(4, 4, number_text(0xfffffffe, 4, false));
  EXPECT_EQ(exif_orientation(bytes_of(far)), std::nullopt);
  std::string many = exif;
  many.replace(22 + 4, 4, number_text(0xffffffff, 4, false));  // so its value lies elsewhere
  EXPECT_EQ(exif_orientation(bytes_of(many)), std::nullopt);

  Bytes wrong_checksum = with_chunk(letters(), "eXIf", exif_text(6, true));
  wrong_checksum[wrong_checksum.size() - kPngEnd - 1] ^= std::byte{1};
  EXPECT_EQ(png_orientation(wrong_checksum), 1U);
}

TEST(Orientation, AnyBytesEndInANumber) {
  std::mt19937_64 random(3);
  const ImageShape shape{1, 8, 8};
  const Bytes jpeg = with_exif(encode_jpeg(shape, gradient(shape), 90), exif_text(6, true));
  const Bytes png = with_chunk(letters(), "eXIf", exif_text(6, true));
  for (int round = 0; round < random_cases(3000); ++round) {
    for (Bytes file : {jpeg, png}) {
      for (int flips = 0; flips < 3; ++flips) {
        file[random() % std::min<std::size_t>(file.size(), 120)] = static_cast<std::byte>(random());
      }
      file.resize(random() % 4 == 0 ? random() % file.size() : file.size());
      EXPECT_LE(jpeg_orientation(file), 8U);
      EXPECT_LE(png_orientation(file), 8U);
    }
  }
}

Bytes transformed(const std::string& text, const Bytes& file, std::uint64_t seed) {
  const Transform transform = Transform::parse(text);
  Bytes out(transform.output_of_file(file).bytes());
  transform.apply_to_file(file, seed, out);
  return out;
}

/// The same of the whole image, which was decoded before.
Bytes transformed_whole(const std::string& text, const Bytes& file, std::uint64_t seed) {
  const Image image = decode_image(file);
  const Transform transform = Transform::parse(text);
  const Field field{
      "image", ElementType::u8, {image.shape.channels, image.shape.height, image.shape.width}};
  Bytes out(transform.output(field).bytes());
  transform.apply(field, image.pixels, seed, out);
  return out;
}

TEST(Orientation, PartsAreThoseOfTheUprightImage) {
  std::mt19937_64 random(7);
  for (unsigned n = 1; n <= 8; ++n) {
    const ImageShape shape{n % 2 == 0 ? 3U : 1U, static_cast<std::uint32_t>(30 + random() % 40),
                           static_cast<std::uint32_t>(30 + random() % 40)};
    const Bytes file =
        with_exif(encode_jpeg(shape, gradient(shape), 90), exif_text(n, random() % 2 == 0));
    for (const std::string text : {"crop=17x23:random", "crop=9x30", "random-resized-crop=12x10",
                                   "resize=33x47,crop=20x9:random", "flip=1,crop=5:random"}) {
      const std::uint64_t seed = random();
      EXPECT_EQ(transformed("full-decode," + text, file, seed),
                transformed_whole("full-decode," + text, file, seed))
          << n << " " << text;
    }
    EXPECT_EQ(transformed("orientation=stored,pad=0", file, 0), decode_image(file, kStored).pixels);
  }
}

// A fraction of an image has a rest at its end alone: turned, that would shift what is seen.
TEST(Orientation, FractionsStayWhereTheWholeImageIs) {
  for (const std::uint32_t width : {96U, 99U, 103U}) {
    const ImageShape shape{1, 80, width};
    Bytes slope(shape.bytes());
    for (std::size_t i = 0; i < slope.size(); ++i) {
      slope[i] = static_cast<std::byte>(2 * (i % width) + i / width / 2);
    }
    for (unsigned n = 1; n <= 8; ++n) {
      const Bytes file = with_exif(encode_jpeg(shape, slope, 98), exif_text(n, true));
      const Bytes small = transformed("resize=10x10", file, 0);
      const Bytes full = transformed("full-decode,resize=10x10", file, 0);
      for (std::size_t i = 0; i < small.size(); ++i) {
        EXPECT_NEAR(std::to_integer<int>(small[i]), std::to_integer<int>(full[i]), 3)
            << n << " " << width;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::test
