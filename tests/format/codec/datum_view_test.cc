// The generated parser is the oracle: whatever scan_datum() accepts, it accepts with equal content.
#include "format/codec/datum_view.hpp"

#include <datum.pb.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

void expect_same(std::string_view value, const DatumView& view) {
  Datum datum;
  ASSERT_TRUE(datum.ParseFromArray(value.data(), static_cast<int>(value.size())));
  EXPECT_EQ(view.channels.value_or(0), datum.channels());
  EXPECT_EQ(view.height.value_or(0), datum.height());
  EXPECT_EQ(view.width.value_or(0), datum.width());
  EXPECT_EQ(view.label.has_value(), datum.has_label());
  EXPECT_EQ(view.label.value_or(0), datum.label());
  EXPECT_EQ(view.encoded, datum.encoded());
  EXPECT_EQ(to_bytes(datum.data()), Bytes(view.data.begin(), view.data.end()));
  ASSERT_EQ(view.floats, static_cast<std::uint64_t>(datum.float_data_size()));
  Bytes floats(view.floats * 4);
  copy_floats(bytes_of(value), floats);
  EXPECT_TRUE(floats.empty() ||
              std::memcmp(floats.data(), datum.float_data().data(), floats.size()) == 0);
}

std::string random_datum(std::mt19937& random) {
  Datum datum;
  const auto number = [&] { return static_cast<std::int32_t>(random()) >> (random() % 31); };
  if (random() % 4 != 0) datum.set_channels(number());
  if (random() % 4 != 0) datum.set_height(number());
  if (random() % 4 != 0) datum.set_width(number());
  if (random() % 2 != 0) datum.set_data(std::string(random() % 300, 'p'));
  if (random() % 2 != 0) datum.set_label(number());
  for (auto n = random() % 5; n > 0; --n) datum.add_float_data(static_cast<float>(number()));
  if (random() % 2 != 0) datum.set_encoded(random() % 2 != 0);
  return datum.SerializeAsString();
}

TEST(DatumView, EqualsTheGeneratedParserOnWrittenDatums) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string value = random_datum(random);
    expect_same(value, scan_datum(bytes_of(value)));
  }
}

TEST(DatumView, NeverAcceptsMoreThanTheGeneratedParser) {
  std::mt19937 random(2);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string value = random_datum(random);
    for (auto n = random() % 4; n > 0 && !value.empty(); --n) {
      value[random() % value.size()] = static_cast<char>(random());
    }
    value.resize(random() % 3 == 0 ? random() % (value.size() + 1) : value.size());
    try {
      expect_same(value, scan_datum(bytes_of(value)));
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    }
  }
  EXPECT_GT(accepted, 1000);
}

// Found by fuzzing: the generated parser reads at most five bytes of a tag or a length.
TEST(DatumView, RefusesOverlongTagsAndLengths) {
  using namespace std::string_view_literals;
  const std::string_view overlong_tag = "\xf5\xf0\xe6\xf5\x80\x00\x09\xe1\xe1\xe7"sv;
  const std::string_view overlong_length = "\x22\x81\x80\x80\x80\x80\x00p"sv;
  for (const std::string_view value : {overlong_tag, overlong_length}) {
    EXPECT_FALSE(Datum().ParseFromArray(value.data(), static_cast<int>(value.size())));
    EXPECT_THROW(scan_datum(bytes_of(value)), Error);
  }
}

TEST(DatumView, ConcatenatedMessagesMergeAsProtocolBuffersDefine) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string value = random_datum(random) + random_datum(random);
    expect_same(value, scan_datum(bytes_of(value)));
  }
}

TEST(DatumView, AcceptsPackedFloatsAndUnknownFields) {
  using namespace std::string_literals;
  const std::string value =
      "\x32\x08\x00\x00\x80\x3f\x00\x00\x00\x40"s  // float_data, packed: 1, 2
      "\x35\x00\x00\x40\x40"s                      // float_data, unpacked: 3
      "\x78\x05"s                                  // field 15, varint
      "\x7a\x02zz"s                                // field 15, bytes
      "\x79\x01\x02\x03\x04\x05\x06\x07\x08"s      // field 15, eight bytes
      "\x0a\x01x"s;                                // channels with the wire type of bytes
  const DatumView view = scan_datum(bytes_of(value));
  EXPECT_EQ(view.floats, 3U);
  EXPECT_FALSE(view.channels.has_value());
  expect_same(value, view);
}

TEST(DatumView, PointsIntoTheValue) {
  Datum datum;
  datum.set_data("pixels");
  const std::string value = datum.SerializeAsString();
  const auto data = scan_datum(bytes_of(value)).data;
  EXPECT_GE(static_cast<const void*>(data.data()), value.data());
  EXPECT_LE(static_cast<const void*>(data.data() + data.size()), value.data() + value.size());
}

TEST(DatumView, EveryTruncationInsideAFieldIsCorrupt) {
  Datum datum;
  datum.set_data("pixels");
  const std::string value = datum.SerializeAsString();
  for (std::size_t size = 1; size < value.size(); ++size) {
    EXPECT_THROW(scan_datum(bytes_of(std::string_view(value).substr(0, size))), Error) << size;
  }
}

}  // namespace
}  // namespace forebay::test
