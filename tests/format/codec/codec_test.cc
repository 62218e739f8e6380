#include <datum.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "format/codec/datum.hpp"
#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

using testing::HasSubstr;

constexpr ImageShape kShape{3, 4, 5};

std::string raw_datum(const ImageShape& shape = kShape, std::optional<std::int32_t> label = 7) {
  return make_datum(shape, gradient(shape), label);
}

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(DatumCodec, DecodesPixelsAndLabel) {
  const std::string value = raw_datum();
  const auto codec = codec_for(value);
  EXPECT_EQ(codec->name(), "datum");
  EXPECT_EQ(to_string(codec->schema()), "image:u8[3x4x5],label:i32[]");
  const Decoded decoded = decode(*codec, value);
  EXPECT_EQ(decoded.fields[0], gradient(kShape));
  EXPECT_EQ(decoded.scalar<std::int32_t>(1), 7);
}

TEST(DatumCodec, WritesWhatCaffeWrites) {
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(raw_datum()));
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(datum.height(), 4);
  EXPECT_EQ(datum.width(), 5);
  EXPECT_EQ(datum.label(), 7);
  EXPECT_FALSE(datum.has_encoded());
  EXPECT_EQ(to_bytes(datum.data()), gradient(kShape));
}

TEST(DatumCodec, DecodesFloats) {
  Datum datum;
  datum.set_channels(2);
  datum.set_height(1);
  datum.set_width(2);
  for (const float value : {0.5F, -1.0F, 2.25F, 1e30F}) datum.add_float_data(value);
  const std::string value = datum.SerializeAsString();
  const auto codec = codec_for(value);
  EXPECT_EQ(to_string(codec->schema()), "image:f32[2x1x2]");
  EXPECT_EQ(std::memcmp(decode(*codec, value).fields[0].data(), datum.float_data().data(), 16), 0);
}

TEST(DatumCodec, DecodesEncodedImagesWhoseShapeTheDatumLeavesOut) {
  Datum datum;
  datum.set_data(text_of(encode_png(kShape, gradient(kShape))));
  datum.set_label(-3);
  datum.set_encoded(true);
  const std::string value = datum.SerializeAsString();
  const auto codec = codec_for(value);
  EXPECT_EQ(to_string(codec->schema()), "image:u8[3x4x5],label:i32[]");
  const Decoded decoded = decode(*codec, value);
  EXPECT_EQ(decoded.fields[0], gradient(kShape));
  EXPECT_EQ(decoded.scalar<std::int32_t>(1), -3);
}

TEST(DatumCodec, RawAndEncodedSamplesMayMix) {
  const auto codec = codec_for(raw_datum());
  const auto file = encode_png(kShape, gradient(kShape));
  const std::string encoded = make_encoded_datum(kShape, file, 9);
  EXPECT_EQ(decode(*codec, encoded).fields[0], gradient(kShape));
}

TEST(DatumCodec, LabelsSurviveTheirWholeRange) {
  const auto codec = codec_for(raw_datum());
  for (const std::int32_t label : {0, 1, 127, 128, 65535, 2147483647, -1, -2147483647 - 1}) {
    EXPECT_EQ(decode(*codec, raw_datum(kShape, label)).scalar<std::int32_t>(1), label);
  }
}

TEST(DatumCodec, AnotherShapeIsAnErrorThatStatesBoth) {
  const auto codec = codec_for(raw_datum());
  const Error raw = error_from([&] { decode(*codec, raw_datum({3, 5, 4})); });
  EXPECT_EQ(raw.kind(), ErrorKind::corrupt);
  EXPECT_THAT(raw.what(), HasSubstr("image:u8[3x5x4]"));
  EXPECT_THAT(raw.what(), HasSubstr("image:u8[3x4x5]"));

  constexpr ImageShape other{1, 8, 8};
  const auto file = encode_jpeg(other, gradient(other), 90);
  const Error encoded = error_from([&] { decode(*codec, make_encoded_datum(other, file, 1)); });
  EXPECT_THAT(encoded.what(), HasSubstr("1x8x8"));
  EXPECT_THAT(encoded.what(), HasSubstr("3x4x5"));
}

TEST(DatumCodec, AMissingOrUnexpectedLabelIsAnError) {
  const std::string with = raw_datum();
  const std::string without = raw_datum(kShape, {});
  EXPECT_EQ(to_string(codec_for(without)->schema()), "image:u8[3x4x5]");
  EXPECT_THAT(error_from([&] { decode(*codec_for(with), without); }).what(), HasSubstr("no label"));
  EXPECT_THAT(error_from([&] { decode(*codec_for(without), with); }).what(), HasSubstr("a label"));
}

struct BadDatum {
  const char* name;
  std::int32_t channels, height, width;
  std::size_t data, floats;
};

class BadDatums : public testing::TestWithParam<BadDatum> {};

TEST_P(BadDatums, AreCorruptAndNeverTakenForDatums) {
  const BadDatum& bad = GetParam();
  Datum datum;
  datum.set_channels(bad.channels);
  datum.set_height(bad.height);
  datum.set_width(bad.width);
  datum.set_data(std::string(bad.data, 'x'));
  for (std::size_t i = 0; i < bad.floats; ++i) datum.add_float_data(1);
  const std::string value = datum.SerializeAsString();
  EXPECT_EQ(error_from([&] { codec_for(value, "datum"); }).kind(), ErrorKind::corrupt);
  EXPECT_EQ(codec_for(value)->name(), "bytes");
}

INSTANTIATE_TEST_SUITE_P(
    DatumCodec, BadDatums,
    testing::Values(BadDatum{"zero_side", 3, 0, 5, 60, 0}, BadDatum{"negative", 3, -4, -5, 60, 0},
                    BadDatum{"too_little_data", 3, 4, 5, 59, 0},
                    BadDatum{"too_much_data", 3, 4, 5, 61, 0}, BadDatum{"no_data", 3, 4, 5, 0, 0},
                    BadDatum{"too_few_floats", 3, 4, 5, 0, 59},
                    // 2^30 * 2^30 * 16 is zero modulo 2^64.
                    BadDatum{"product_wraps_to_zero", 1 << 30, 1 << 30, 16, 0, 0},
                    BadDatum{"product_wraps", 2147483647, 2147483647, 2147483647, 7, 0}),
    [](const auto& bad) { return bad.param.name; });

TEST(DatumCodec, AMissingSideIsNamed) {
  Datum datum;
  datum.set_channels(1);
  datum.set_width(2);
  datum.set_data("ab");
  const std::string value = datum.SerializeAsString();
  EXPECT_THAT(error_from([&] { codec_for(value, "datum"); }).what(), HasSubstr("no height"));
}

TEST(AnyCodec, AnEmptyValueIsAnErrorWhereFieldsAreExpected) {
  const std::string png = text_of(encode_png(kShape, gradient(kShape)));
  for (const auto& codec :
       {codec_for(raw_datum()), codec_for(png), codec_for("12345678", "raw", "x:i64[]")}) {
    EXPECT_THAT(error_from([&] { decode(*codec, ""); }).what(), HasSubstr("empty"))
        << codec->name();
  }
  EXPECT_EQ(error_from([] { codec_for(""); }).kind(), ErrorKind::corrupt);
  EXPECT_NO_THROW(decode(*codec_for("", "bytes"), ""));
}

TEST(AnyCodec, BuffersThatDoNotFitAreRefusedBeforeAnythingIsWritten) {
  const std::string value = raw_datum();
  const auto codec = codec_for(value);
  Bytes small(59);
  Bytes label(4);
  const std::span<std::byte> fields[] = {small, label};
  EXPECT_EQ(error_from([&] { codec->decode(bytes_of(value), fields); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([&] { codec->decode(bytes_of(value), {}); }).kind(), ErrorKind::usage);
}

TEST(AnyCodec, DecodesFromManyThreadsAtOnce) {
  const std::string value = make_encoded_datum(kShape, encode_png(kShape, gradient(kShape)), 1);
  const auto codec = codec_for(value);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(decode(*codec, value).fields[0], gradient(kShape));
    });
  }
}

TEST(RawCodec, SplitsConcatenatedFields) {
  const auto codec = codec_for("abcdefgh", "raw", "image:u8[2x2],label:i32[]");
  const Decoded decoded = decode(*codec, "abcdefgh");
  EXPECT_EQ(decoded.fields[0], to_bytes("abcd"));
  EXPECT_EQ(decoded.fields[1], to_bytes("efgh"));
  EXPECT_THAT(error_from([&] { decode(*codec, "abcdefg"); }).what(), HasSubstr("7 bytes"));
  EXPECT_EQ(error_from([] { codec_for("abc", "raw"); }).kind(), ErrorKind::usage);
}

TEST(ImageCodec, DecodesFilesOfOneShape) {
  const std::string first = text_of(encode_png(kShape, gradient(kShape)));
  const auto codec = codec_for(first);
  EXPECT_EQ(codec->name(), "image");
  EXPECT_EQ(to_string(codec->schema()), "image:u8[3x4x5]");
  EXPECT_EQ(decode(*codec, first).fields[0], gradient(kShape));
  EXPECT_EQ(error_from([&] { decode(*codec, "not an image"); }).kind(), ErrorKind::corrupt);
}

TEST(MakeCodec, DetectsWhatValuesAre) {
  EXPECT_EQ(codec_for(raw_datum())->name(), "datum");
  EXPECT_EQ(codec_for(text_of(encode_jpeg(kShape, gradient(kShape), 90)))->name(), "image");
  EXPECT_EQ(codec_for("just some text")->name(), "bytes");
  EXPECT_EQ(codec_for("abcd", "auto", "x:u8[4]")->name(), "raw");
}

TEST(MakeCodec, ChecksADeclaredSchema) {
  const std::string value = raw_datum();
  EXPECT_NO_THROW(codec_for(value, "datum", "image:u8[3x4x5],label:i32[]"));
  const Error error = error_from([&] { codec_for(value, "datum", "image:u8[3x4x6],label:i32[]"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("3x4x6"));
  EXPECT_EQ(error_from([] { codec_for("abc", "auto", "x:u8[4]"); }).kind(), ErrorKind::corrupt);
  EXPECT_EQ(error_from([] { codec_for("abc", "jpeg2000"); }).kind(), ErrorKind::usage);
}

}  // namespace
}  // namespace forebay::test
