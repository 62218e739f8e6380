// Samples of several parts: their bytes as one value, and their codecs.
#include "format/codec/codecs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

std::vector<std::byte> packed(const std::vector<std::string>& parts) {
  std::vector<std::span<const std::byte>> spans;
  for (const std::string& part : parts) spans.push_back(std::as_bytes(std::span(part)));
  std::vector<std::byte> value(packed_parts_bytes(spans));
  pack_parts(spans, value);
  return value;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(PackedParts, ComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> parts(random() % 9);
    for (std::string& part : parts) {
      part.assign(random() % 3 == 0 ? 0 : random() % 40, static_cast<char>(random()));
    }
    const auto value = packed(parts);
    const auto again = split_parts(value, parts.size());
    ASSERT_EQ(again.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(text(again[i]), parts[i]);
      EXPECT_EQ((again[i].data() - value.data()) % 8, 0);
    }
  }
}

TEST(PackedParts, AnythingElseIsRefused) {
  const auto value = packed({"image", "", "label"});
  EXPECT_THROW(split_parts(value, 2), Error);
  EXPECT_THROW(split_parts(value, 4), Error);
  EXPECT_THROW(split_parts({}, 0), Error);
  EXPECT_THROW(split_parts(value, SIZE_MAX), Error);
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_THROW(split_parts(std::span(value).first(size), 3), Error) << size;
  }
  for (std::size_t at = 0; at < 32; ++at) {  // the magic, the count, and each length
    auto damaged = value;
    damaged[at] ^= std::byte{0x80};
    EXPECT_THROW(split_parts(damaged, 3), Error) << at;
  }
}

TEST(PackedParts, AreToldWhereTheyAre) {
  const std::vector<std::string> parts{"image", "", "label"};
  std::vector<std::span<const std::byte>> spans;
  for (const std::string& part : parts) spans.push_back(std::as_bytes(std::span(part)));
  std::vector<std::byte> value(told_parts_bytes(parts.size()));
  tell_parts(spans, value);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    EXPECT_EQ(split_parts(value, 3)[p].data(), spans[p].data());
    EXPECT_EQ(split_parts(value, 3)[p].size(), spans[p].size());
  }
  EXPECT_EQ(packed_size(value), packed(parts).size());
  std::vector<std::byte> copy(packed_size(value));
  copy_packed(value, copy);
  EXPECT_EQ(copy, packed(parts));
  fetch_ends(value);
  EXPECT_THROW(split_parts(value, 2), Error);
  value[0] ^= std::byte{1};  // what a file could hold
  EXPECT_THROW(split_parts(value, 3), Error);
  EXPECT_EQ(packed_size(value), value.size());
}

TEST(PartsCodec, EachPartHasItsOwnCodecAndFields) {
  const auto value = packed({"0123456789abcdef", "word"});
  const CodecOptions options{.codec = parts_codec_text({"x", "label"}, "auto"), .schema = {}};
  EXPECT_EQ(options.codec, "parts(x=auto,label=auto)");
  EXPECT_TRUE(make_codec(options, value)->schema().fields.empty()) << "bytes have no shape";
  EXPECT_EQ(parts_codec_text({"x", "label"}, "label=bytes"), "parts(x=auto,label=bytes)");
  EXPECT_EQ(parts_codec_text({"x", "label"}, "bytes"), "bytes");
}

TEST(PartsCodec, ADatumKeepsItsFieldsBesideOtherParts) {
  // channels 1, height 1, width 3, data "abc", label 7
  const std::string datum(
      "\x08\x01\x10\x01\x18\x03\x22\x03"
      "abc"
      "\x28\x07",
      13);
  const auto value = packed({"some text", datum});
  const auto codec =
      make_codec({.codec = parts_codec_text({"note", "data"}, "auto"), .schema = {}}, value);
  EXPECT_EQ(to_string(codec->schema()), "data.image:u8[1x1x3],data.label:i32[]");
  std::vector<std::byte> image(3), label(4);
  const std::span<std::byte> fields[] = {image, label};
  codec->decode(value, fields);
  EXPECT_EQ(text(image), "abc");
  EXPECT_EQ(std::to_integer<int>(label[0]), 7);
  EXPECT_THROW(codec->decode(packed({"some text", ""}), fields), Error);
  EXPECT_THROW(codec->decode(packed({datum}), fields), Error);
}

TEST(PartsCodec, PartsWithoutFieldsAreCheckedToo) {
  const CodecOptions options{.codec = "parts(box=f32,n=number)", .schema = {}};
  const auto codec = make_codec(options, packed({"12345678", "1"}));
  EXPECT_EQ(to_string(codec->schema()), "n:i64[]");
  std::vector<std::byte> number(8);
  const std::span<std::byte> fields[] = {number};
  codec->decode(packed({"123456781234", "2"}), fields);
  codec->decode(packed({"", "2"}), fields);
  const Error error = test::error_from([&] { codec->decode(packed({"1234567", "2"}), fields); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_EQ(error.happened(), "part 'box': 7 bytes are no array of f32");
}

TEST(PartsCodec, ThatOfAPartWhoseKindIsKnownKeepsWhatIsSaidOfImages) {
  const std::vector<std::string> parts{"jpg", "cls", "txt"};
  const std::vector<std::string> known{"image", "number", "auto"};
  const auto text = [&](const std::string& wanted) {
    return parts_codec_text(parts, wanted, known);
  };
  EXPECT_EQ(text("auto"), "parts(jpg=image,cls=number,txt=auto)");
  EXPECT_EQ(text("auto:rgb"), "parts(jpg=image:rgb,cls=number,txt=auto:rgb)");
  EXPECT_EQ(text("image:gray"), "parts(jpg=image:gray,cls=number,txt=image:gray)");
  EXPECT_EQ(text("jpg=auto:rgb"), "parts(jpg=image:rgb,cls=number,txt=auto)");
  EXPECT_EQ(text("jpg=bytes,cls=image"), "parts(jpg=bytes,cls=image,txt=auto)");
  EXPECT_EQ(text("datum"), "parts(jpg=datum,cls=number,txt=datum)");
}

TEST(PartsCodec, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(parts_codec_text({"a", "b"}, "c=image"), Error);
  EXPECT_THROW(parts_codec_text({"a", "b"}, "a=image,b"), Error);
  const auto value = packed({"x", "y"});
  try {
    make_codec({.codec = "parts(a=image,b=bytes)", .schema = {}}, value);
    FAIL() << "it is an image";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("part 'a'"));
  }
  EXPECT_THROW(make_codec({.codec = "parts(a=auto", .schema = {}}, value), Error);
  EXPECT_THROW(make_codec({.codec = "parts(a=nonsense,b=auto)", .schema = {}}, value), Error);
}

}  // namespace
}  // namespace forebay
