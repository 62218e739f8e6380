// Codecs with a transform: which field it is, which sizes fit, and what else stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/transform.hpp"
#include "format/codec/datum.hpp"
#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Codec> transformed(std::string_view value, const std::string& transform,
                                         const std::string& codec = "auto",
                                         const std::string& schema = "") {
  return make_codec({.codec = codec, .schema = schema, .transform = transform}, bytes_of(value));
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string jpeg(const ImageShape& shape) {
  return text_of(encode_jpeg(shape, gradient(shape), 90));
}

Bytes plainly(const std::string& text, const ImageShape& shape, const Bytes& pixels,
              std::uint64_t seed = 0) {
  const Transform transform = Transform::parse(text);
  const Field field{"image", ElementType::u8, {shape.channels, shape.height, shape.width}};
  Bytes out(transform.output(field).bytes());
  transform.apply(field, pixels, seed, out);
  return out;
}

Bytes pixels_of(const std::string& file, const ImageShape& shape) {
  Bytes pixels(shape.bytes());
  decode_image(bytes_of(file), shape, pixels);
  return pixels;
}

TEST(Transformed, FilesOfManySizesBecomeOneShape) {
  const auto codec = transformed(jpeg({3, 40, 50}), "full-decode,rgb,random-resized-crop=16");
  EXPECT_EQ(codec->name(), "image");
  EXPECT_EQ(to_string(codec->schema()), "image:u8[3x16x16]");
  for (const ImageShape& shape :
       {ImageShape{3, 90, 31}, ImageShape{1, 17, 64}, ImageShape{3, 1, 1}}) {
    for (const std::string& file : {jpeg(shape), text_of(encode_png(shape, gradient(shape)))}) {
      Bytes out(3 * 16 * 16);
      const std::span<std::byte> fields[] = {out};
      codec->decode_seeded(bytes_of(file), fields, 77);
      EXPECT_EQ(out, plainly("rgb,random-resized-crop=16", shape, pixels_of(file, shape), 77));
    }
  }
}

TEST(Transformed, DatumsKeepTheirLabels) {
  const ImageShape shape{3, 20, 30}, other{3, 11, 12};
  const auto datum = [](const ImageShape& s, int label) {
    return make_encoded_datum(s, bytes_of(jpeg(s)), label);
  };
  const auto codec = transformed(datum(shape, 1), "crop=10,to-float");
  EXPECT_EQ(to_string(codec->schema()), "image:f32[3x10x10],label:i32[]");
  const Decoded decoded = decode(*codec, datum(other, -5));
  EXPECT_EQ(decoded.scalar<std::int32_t>(1), -5);
  EXPECT_EQ(decoded.fields[0], plainly("crop=10,to-float", other, pixels_of(jpeg(other), other)));
  // Plain ones among them, also of another size.
  const Decoded plain = decode(*codec, make_datum(other, gradient(other), 9));
  EXPECT_EQ(plain.fields[0], plainly("crop=10,to-float", other, gradient(other)));
  EXPECT_EQ(plain.scalar<std::int32_t>(1), 9);
}

TEST(Transformed, PlainDatumsAndTensorsToo) {
  const ImageShape shape{1, 8, 6};
  const std::string value = make_datum(shape, gradient(shape), 4);
  EXPECT_EQ(decode(*transformed(value, "flip=1,rgb"), value).fields[0],
            plainly("flip=1,rgb", shape, gradient(shape)));
  const std::string tensor = "ab" + text_of(gradient({3, 4, 5}));
  const auto codec = transformed(tensor, "crop=2", "raw", "id:u16[],pixels:u8[3x4x5]");
  EXPECT_EQ(to_string(codec->schema()), "id:u16[],pixels:u8[3x2x2]");
  const Decoded decoded = decode(*codec, tensor);
  EXPECT_EQ(text_of(decoded.fields[0]), "ab");
  EXPECT_EQ(decoded.fields[1], plainly("crop=2", {3, 4, 5}, gradient({3, 4, 5})));
  EXPECT_EQ(
      to_string(
          transformed(tensor, "pixels:resize=9x8", "raw", "id:u16[],pixels:u8[3x4x5]")->schema()),
      "id:u16[],pixels:u8[3x9x8]");
}

TEST(Transformed, WhatDoesNotFitIsRefusedAtOpenOrNamesTheSample) {
  const std::string color = jpeg({3, 20, 30});
  EXPECT_THAT(error_from([&] { transformed(color, "resize=8x8,crop=9"); }).what(),
              HasSubstr("crop=9x9"));
  EXPECT_THAT(error_from([&] { transformed(color, "x:flip"); }).what(), HasSubstr("no field 'x'"));
  EXPECT_THAT(error_from([&] { transformed(color, "flop"); }).what(), HasSubstr("flop"));
  EXPECT_EQ(error_from([&] { transformed("?", "flip"); }).kind(), ErrorKind::corrupt);
  const std::string two = "0123456789012345678901234567";
  EXPECT_THAT(error_from([&] { transformed(two, "flip", "raw", "a:u8[2x7],b:u8[2x7]"); }).what(),
              HasSubstr("2 may be one"));

  const auto smaller = error_from([&] {
    decode(*transformed(color, "crop=10"), jpeg({3, 9, 30}));
  });
  EXPECT_EQ(smaller.kind(), ErrorKind::corrupt);
  EXPECT_THAT(smaller.what(), HasSubstr("u8[3x9x30]"));
  const auto gray = error_from([&] { decode(*transformed(color, "crop=10"), jpeg({1, 20, 30})); });
  EXPECT_THAT(gray.what(), HasSubstr("put rgb or gray first"));
  const auto size = error_from([&] { decode(*transformed(color, "flip"), jpeg({3, 21, 30})); });
  EXPECT_THAT(size.what(), testing::AllOf(HasSubstr("3x21x30"), HasSubstr("end in one size")));
}

TEST(Transformed, DamagedFilesAreCorrupt) {
  const ImageShape shape{3, 64, 64};
  const std::string file = jpeg(shape);
  const auto codec = transformed(file, "rgb,random-resized-crop=16");
  for (const std::size_t size : {std::size_t{0}, std::size_t{2}, file.size() / 20}) {
    EXPECT_EQ(error_from([&] { decode(*codec, file.substr(0, size)); }).kind(), ErrorKind::corrupt);
  }
}

}  // namespace
}  // namespace forebay::test
