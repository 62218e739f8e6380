// What protoc generates is the oracle: scan_datum() accepts what its parser accepts, with equal
// content, and nothing else; and Datums are written as by its writer.
#include "format/codec/datum.hpp"

#include <datum.pb.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>

#include "tests/format/codec/fixture.hpp"
#include "tests/support/scale.hpp"

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

// The parser is the oracle for refusals as well.
void expect_same_verdict(std::string_view value, int& accepted) {
  std::optional<DatumView> view;
  try {
    view = scan_datum(bytes_of(value));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_FALSE(Datum().ParseFromArray(value.data(), static_cast<int>(value.size())))
        << error.what();
    return;
  }
  ++accepted;
  expect_same(value, *view);
}

void damage(std::string& value, std::mt19937& random) {
  for (auto n = random() % 4; n > 0 && !value.empty(); --n) {
    value[random() % value.size()] = static_cast<char>(random());
  }
  if (random() % 3 == 0) value.resize(random() % (value.size() + 1));
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
  for (int i = 0; i < random_cases(20000); ++i) {
    std::string value = random_datum(random);
    damage(value, random);
    expect_same_verdict(value, accepted);
  }
  EXPECT_GT(accepted, 1000);
}

// Field after field of any number and wire type, as no writer would write them: in any order,
// again, unknown, in groups, numbers longer than they need to be or than they may be.
class WildWriter {
 public:
  explicit WildWriter(std::mt19937& random) : random_(random) {}

  std::string value() {
    std::string out;
    for (auto fields = below(8); fields > 0; --fields) out += field(0);
    return out;
  }

 private:
  std::string field(int depth) {
    const std::uint64_t number = below(4) == 0 ? random_() >> below(32) : 1 + below(9);
    const std::uint64_t type = below(20) == 0 ? below(8) : kTypes[below(std::size(kTypes))];
    const std::string tag = varint(number << 3 | type);
    switch (type) {
      case 0:
        return tag + varint(std::uint64_t{random_()} << below(33) >> below(33));
      case 1:
        return tag + bytes(8);
      case 2:
        return tag + counted(bytes(below(3) == 0 ? below(20) : 4 * below(5)));
      case 3:
        return tag + group(depth + 1) + varint(number << 3 | 4);
      case 5:
        return tag + bytes(4);
      default:
        return tag;
    }
  }

  std::string group(int depth) {
    std::string out;
    for (auto fields = depth < 4 ? below(3) : 0; fields > 0; --fields) out += field(depth);
    return out;
  }

  std::string varint(std::uint64_t number) {
    std::string out;
    for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
    out += static_cast<char>(number);
    if (below(20) != 0) return out;
    for (auto more = below(9); more > 0; --more) {
      out.back() = static_cast<char>(out.back() | 0x80);
      out += static_cast<char>(below(4) == 0 ? below(128) : 0);
    }
    return out;
  }

  std::string bytes(std::size_t size) {
    std::string out(size, 0);
    for (char& byte : out) byte = static_cast<char>(random_());
    return out;
  }

  std::string counted(const std::string& payload) { return varint(payload.size()) + payload; }
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  static constexpr std::uint64_t kTypes[] = {0, 0, 0, 1, 2, 2, 2, 3, 5, 5};
  std::mt19937& random_;
};

TEST(DatumView, AcceptsAndRefusesWildValuesLikeTheGeneratedParser) {
  std::mt19937 random(4);
  WildWriter writer(random);
  int accepted = 0;
  const int cases = random_cases(40000);
  for (int i = 0; i < cases; ++i) {
    std::string value = writer.value();
    if (i % 2 == 0) damage(value, random);
    expect_same_verdict(value, accepted);
  }
  EXPECT_GT(accepted, cases / 5);
  EXPECT_LT(accepted, cases - cases / 5);
}

TEST(DatumView, GroupsNestAsDeepAsTheGeneratedParserAllows) {
  int accepted = 0;
  for (const std::size_t depth : {1, 2, 99, 100, 101, 5000}) {
    const std::string value = std::string(depth, '\x7b') + std::string(depth, '\x7c');
    expect_same_verdict(value, accepted);
    expect_same_verdict(value + '\x7c', accepted);
    expect_same_verdict(value.substr(0, 2 * depth - 1), accepted);
  }
  EXPECT_EQ(accepted, 4);
}

TEST(DatumWriter, WritesTheBytesOfTheGeneratedWriter) {
  std::mt19937 random(5);
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (int i = 0; i < 5000; ++i) {
    const bool encoded = i % 2 != 0;
    const auto side = [&] {
      return static_cast<std::uint32_t>(encoded ? random() % (kMost >> random() % 31)
                                                : 1 + random() % 20);
    };
    const ImageShape shape{side(), side(), side()};
    const auto size = encoded ? random() % 300 + 1 : shape.bytes();
    const Bytes data = gradient({1, 1, static_cast<std::uint32_t>(size)});
    std::optional<std::int32_t> label;
    if (random() % 4 != 0) label = static_cast<std::int32_t>(random()) >> random() % 31;
    Datum datum;
    datum.set_channels(static_cast<std::int32_t>(shape.channels));
    datum.set_height(static_cast<std::int32_t>(shape.height));
    datum.set_width(static_cast<std::int32_t>(shape.width));
    datum.set_data(data.data(), data.size());
    if (label) datum.set_label(*label);
    if (encoded) datum.set_encoded(true);
    ASSERT_EQ(encoded ? make_encoded_datum(shape, data, label) : make_datum(shape, data, label),
              datum.SerializeAsString());
  }
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
