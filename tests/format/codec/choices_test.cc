// What an image file becomes, and how else it may be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/transform.hpp"
#include "format/codec/codecs.hpp"
#include "format/codec/datum.hpp"
#include "tests/format/codec/image_files.hpp"
#include "tests/format/transform/jpeg_files.hpp"

namespace forebay::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ImageChoices choices(const std::string& words) { return parse_codec_name("image:" + words).images; }

template <typename T>
std::vector<int> numbers_of(const Bytes& bytes) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    numbers.push_back(static_cast<int>(value));
  }
  return numbers;
}

std::vector<int> pixels(const Bytes& file, const ImageChoices& how = {}) {
  return numbers_of<std::uint8_t>(decode_image(file, how).pixels);
}

/// Codec `name` of the file `one`: its schema.
std::string schema_of(const Bytes& one, const std::string& name = "image") {
  return to_string(make_codec({.codec = name, .schema = {}}, one)->schema());
}

// Depths in millimetres: their high bytes alone would be 2, 2, 3, 255.
Bytes depths() {
  return png_of(
      {.width = 2, .height = 2, .bits = 16, .rows = std::string("\2\0\2\xff\3\4\xff\xff", 8)});
}

const std::string kColors =
    chunk_text("PLTE", std::string("\0\0\0\x80\0\0\0\x80\0\0\0\xff", 12));  // black red green blue

/// Four pixels of the colors 0, 1, 2, 3.
Bytes mask(const std::string& alpha = "") {
  const std::string transparent = alpha.empty() ? "" : chunk_text("tRNS", alpha);
  return png_of({.width = 4,
                 .height = 1,
                 .bits = 2,
                 .color = 3,
                 .chunks = kColors + transparent,
                 .rows = "\x1b"});
}

Bytes rgba() {
  return encode_png({4, 1, 2}, to_bytes(std::string("\x0a\x0b\x14\x15\x1e\x1f\x00\xc8", 8)));
}

TEST(ImageChoices, SixteenBitsStaySixteenBits) {
  EXPECT_EQ(schema_of(depths()), "image:u16[1x2x2]");
  EXPECT_THAT(numbers_of<std::uint16_t>(decode_image(depths()).pixels),
              ElementsAre(0x200, 0x2ff, 0x304, 0xffff));
  const ImageShape color{3, 5, 4, ElementType::u16};
  const Bytes numbers = gradient({6, 5, 4});
  const Image image = decode_image(encode_png(color, numbers));
  EXPECT_EQ(image.shape, color);
  EXPECT_EQ(image.pixels, numbers);
  const Image gray =
      decode_image(encode_png({1, 1, 1, ElementType::u16}, to_bytes("\x34\x12")), choices("rgb"));
  EXPECT_THAT(numbers_of<std::uint16_t>(gray.pixels), ElementsAre(0x1234, 0x1234, 0x1234));
}

TEST(ImageChoices, SixteenBitsAmongBytesNameTheRemedy) {
  const Bytes first = encode_png({1, 2, 2}, gradient({1, 2, 2}));
  const auto codec = make_codec({.codec = "auto", .schema = {}, .transform = "flip"}, first);
  const Error error = error_from([&] { decode(*codec, depths()); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("cast=TYPE"));
  const auto bytes = make_codec({.codec = "auto", .schema = {}, .transform = "cast=u8"}, first);
  EXPECT_THAT(numbers_of<std::uint8_t>(decode(*bytes, depths()).fields[0]),
              ElementsAre(255, 255, 255, 255));
}

TEST(ImageChoices, SingleBitsAmongColorsNameTheRemedy) {
  const Bytes first = encode_png({3, 1, 4}, gradient({3, 1, 4}));
  const ImageShape one_bit{.channels = 1, .height = 1, .width = 4, .bits = true};
  const Bytes bits = encode_png(one_bit, Bytes(4, std::byte{1}));
  EXPECT_EQ(image_shape(bits), one_bit);
  const auto codec = make_codec({.codec = "auto", .schema = {}, .transform = {}}, first);
  EXPECT_THAT(error_from([&] { decode(*codec, bits); }).what(), HasSubstr("auto:rgb"));
  const auto rgb = make_codec({.codec = "auto:rgb", .schema = {}, .transform = {}}, first);
  EXPECT_EQ(decode(*rgb, bits).fields[0], Bytes(12, std::byte{255}));
}

TEST(ImageChoices, SixteenBitsGoThroughTransforms) {
  const Transform crop = Transform::parse("crop=1x2,cast=f32");
  EXPECT_EQ(to_string(Schema{{crop.output_of_file(depths())}}), "image:f32[1x1x2]");
  Bytes out(8);
  crop.apply_to_file(depths(), 0, out);
  EXPECT_THAT(numbers_of<float>(out), ElementsAre(0x200, 0x2ff));
  EXPECT_THAT(error_from([] { Transform::parse("to-float").output_of_file(depths()); }).what(),
              HasSubstr("cast=f32"));
}

TEST(ImageChoices, APaletteIsItsColorsOrItsNumbers) {
  EXPECT_EQ(schema_of(mask()), "image:u8[3x1x4]");
  EXPECT_THAT(pixels(mask()), ElementsAre(0, 128, 0, 0, 0, 0, 128, 0, 0, 0, 0, 255));
  EXPECT_EQ(schema_of(mask(), "image:palette=index"), "image:u8[1x1x4]");
  EXPECT_THAT(pixels(mask(), choices("palette=index")), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pixels(mask("\x40"), choices("palette=index")), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(decode_image(mask(), choices("palette=index")).classes);
  // Files without a palette are as they are: masks of both kinds may mix.
  const Bytes gray = encode_png({1, 1, 4}, to_bytes(std::string("\0\1\2\3", 4)));
  EXPECT_THAT(pixels(gray, choices("palette=index")), ElementsAre(0, 1, 2, 3));
}

TEST(ImageChoices, FewBitsAreGraysAndOneBitIsYesOrNo) {
  const Bytes bits = png_of({.width = 10, .height = 2, .bits = 1, .rows = "\xa0\x40\x7f\x80"});
  EXPECT_THAT(pixels(bits),
              ElementsAre(1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0));
  EXPECT_TRUE(decode_image(bits).classes);
  EXPECT_EQ(pixels(bits, choices("gray"))[0], 255);
  EXPECT_EQ(schema_of(bits, "image:rgb"), "image:u8[3x2x10]");
  const Bytes two = png_of({.width = 4, .height = 1, .bits = 2, .rows = "\x1b"});
  EXPECT_THAT(pixels(two), ElementsAre(0, 85, 170, 255));
}

TEST(ImageChoices, TransparencyStaysUnlessItIsSaidToGo) {
  EXPECT_EQ(schema_of(rgba()), "image:u8[4x1x2]");
  EXPECT_THAT(pixels(rgba()), ElementsAre(10, 11, 20, 21, 30, 31, 0, 200));
  EXPECT_THAT(pixels(rgba(), choices("rgb")), ElementsAre(10, 11, 20, 21, 30, 31));
  EXPECT_THAT(pixels(rgba(), choices("gray")), ElementsAre(18, 19));
  const Bytes gray = encode_png({2, 1, 2}, to_bytes("\x07\x08\xfe\xff"));
  EXPECT_EQ(schema_of(gray), "image:u8[2x1x2]");
  EXPECT_THAT(pixels(gray, choices("gray")), ElementsAre(7, 8));
  EXPECT_THAT(pixels(gray, choices("rgba")), ElementsAre(7, 8, 7, 8, 7, 8, 254, 255));
  const Bytes opaque = encode_png({1, 1, 1}, to_bytes("\x07"));
  EXPECT_THAT(pixels(opaque, choices("rgba")), ElementsAre(7, 7, 7, 255));
  // A palette may say it for each of its colors, an image for one color.
  EXPECT_EQ(schema_of(mask(std::string("\0\x40", 2))), "image:u8[4x1x4]");
  EXPECT_THAT(pixels(mask(std::string("\0\x40", 2)), choices("rgba")),
              ElementsAre(0, 128, 0, 0, 0, 0, 128, 0, 0, 0, 0, 255, 0, 64, 255, 255));
  const Bytes keyed = png_of({.width = 2,
                              .height = 1,
                              .chunks = chunk_text("tRNS", std::string("\0\5", 2)),
                              .rows = "\5\6"});
  EXPECT_THAT(pixels(keyed), ElementsAre(5, 6, 0, 255));
}

TEST(ImageChoices, ATransformDropsTransparencyWhereItGivesChannels) {
  const Transform rgb = Transform::parse("flip=1,rgb");
  EXPECT_EQ(to_string(Schema{{rgb.output_of_file(rgba())}}), "image:u8[3x1x2]");
  Bytes out(6);
  rgb.apply_to_file(rgba(), 0, out);
  EXPECT_THAT(numbers_of<std::uint8_t>(out), ElementsAre(11, 10, 21, 20, 31, 30));
  const Error error = error_from([] { Transform::parse("flip").output_of_file(rgba()); });
  EXPECT_THAT(error.what(), HasSubstr("4x1x2"));
  EXPECT_THAT(error.what(), HasSubstr("rgb or gray"));
  // In a codec, where the first has none and a later one has it.
  const auto codec = make_codec({.codec = "auto", .schema = {}, .transform = "rgb,resize=1x2"},
                                encode_png({3, 4, 4}, gradient({3, 4, 4})));
  EXPECT_THAT(numbers_of<std::uint8_t>(decode(*codec, rgba()).fields[0]),
              ElementsAre(10, 11, 20, 21, 30, 31));
}

TEST(ImageChoices, HoldInDatumsAndParts) {
  const std::string datum = make_encoded_datum({3, 1, 4}, mask(), 5);
  const auto codec = codec_for(datum, "datum:palette=index");
  EXPECT_EQ(to_string(codec->schema()), "image:u8[1x1x4],label:i32[]");
  EXPECT_THAT(numbers_of<std::uint8_t>(decode(*codec, datum).fields[0]), ElementsAre(0, 1, 2, 3));
  const std::string deep = make_encoded_datum({1, 2, 2}, depths(), 5);
  EXPECT_EQ(to_string(codec_for(deep)->schema()), "image:u16[1x2x2],label:i32[]");
  EXPECT_EQ(decode(*codec_for(deep), deep).fields[0], decode_image(depths()).pixels);

  const std::vector<std::string> parts{"image", "seg", "id"}, known{"auto", "auto", "number"};
  EXPECT_EQ(parts_codec_text(parts, "auto:orientation=stored", known),
            "parts(image=auto:orientation=stored,seg=auto:orientation=stored,id=number)");
  EXPECT_EQ(parts_codec_text(parts, "seg=image:palette=index", known),
            "parts(image=auto,seg=image:palette=index,id=number)");
}

TEST(ImageChoices, WordsThatContradictOrAreUnknownAreRefused) {
  for (const char* codec : {"image:rgb:gray", "image:palette=index:rgb", "image:upright",
                            "image:", "auto:orientation=6", "datum:RGB"}) {
    EXPECT_EQ(error_from([&] { parse_codec_name(codec); }).kind(), ErrorKind::usage) << codec;
  }
  const Error error = error_from([] {
    make_codec({.codec = "image:palette=index", .schema = {}, .transform = "rgb"}, mask());
  });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  for (const char* transform : {"resize=2", "crop=1x4,resize=8x8", "random-resized-crop=2"}) {
    const Error averaged = error_from([&] {
      make_codec({.codec = "image:palette=index", .schema = {}, .transform = transform}, mask());
    });
    EXPECT_EQ(averaged.kind(), ErrorKind::usage) << transform;
    EXPECT_THAT(averaged.what(), HasSubstr("numbers of classes"));
  }
  EXPECT_EQ(codec_for("12345678", "image:u8[2x4]")->name(), "raw") << "a field called image";
  EXPECT_EQ(choices("rgb:orientation=stored").text(), ":orientation=stored:rgb");
  const std::string text = "orientation=stored,palette=index,crop=2x2";
  EXPECT_EQ(Transform::parse(text).to_text(), text);
  EXPECT_EQ(error_from([] { Transform::parse("crop=2,orientation=stored"); }).kind(),
            ErrorKind::usage);
  EXPECT_EQ(error_from([] { Transform::parse("orientation=upside"); }).kind(), ErrorKind::usage);
}

TEST(ImageChoices, AnotherNumberOfChannelsNamesTheRemedy) {
  const auto codec = make_codec({}, encode_png({3, 1, 2}, gradient({3, 1, 2})));
  const Error error = error_from([&] { decode(*codec, rgba()); });
  EXPECT_THAT(error.what(), HasSubstr("4x1x2"));
  EXPECT_THAT(error.what(), HasSubstr("auto:rgb"));
}

// Cyan, magenta, yellow and black inks; 255 is none, in files. Pillow's convert("RGB").
TEST(ImageChoices, InksBecomeColors) {
  for (const bool luma : {false, true}) {
    const Bytes file = ink_jpeg(40, 24, {255, 128, 64, 200}, luma);
    EXPECT_EQ(schema_of(file), "image:u8[3x24x40]");
    const Image image = decode_image(file);
    const int expected[] = {200, 100, 50};  // 200 - 200 * (255 - ink) / 255, rounded
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(std::to_integer<int>(image.pixels[c * 24 * 40 + 100]), expected[c], 2) << luma;
    }
    Bytes part(3 * 7 * 5);
    const Transform crop = Transform::parse("crop=7x5");
    crop.apply_to_file(file, 0, part);
    EXPECT_EQ(part[0], image.pixels[8 * 40 + 17]);
  }
}

}  // namespace
}  // namespace forebay::test
