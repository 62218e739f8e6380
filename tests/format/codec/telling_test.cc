// Which sample tells what all values are: bad ones do not, wherever they are, and few are looked at
// where values may be anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/packed_parts.hpp"
#include "format/codec/codecs.hpp"
#include "tests/format/codec/fixture.hpp"

namespace forebay {
namespace {

using test::Bytes;
using test::error_from;
using test::to_bytes;

constexpr std::size_t kFew = 16;

Bytes image(std::uint32_t side = 4) {
  const ImageShape shape{3, side, side};
  return encode_png(shape, test::gradient(shape));
}

Bytes page() { return to_bytes("<html>404"); }

Bytes packed(const std::vector<Bytes>& parts) {
  const std::vector<std::span<const std::byte>> spans(parts.begin(), parts.end());
  Bytes value(packed_parts_bytes(spans));
  pack_parts(spans, value);
  return value;
}

/// Samples in memory, of which some cannot be read.
struct Stored {
  std::vector<Bytes> values;
  std::size_t unreadable = 0;  ///< the first ones
  std::size_t reads = 0;

  TellingSample telling(const std::string& codec, const Doubts& doubts = {}) {
    reads = 0;
    const auto read = [&](std::uint64_t id, const RecordSink& sink) {
      ++reads;
      if (id < unreadable) throw Error(ErrorKind::io, "no answer");
      sink({.sample = id, .key = {}, .value = values[id]});
    };
    return find_telling_sample({.codec = codec, .schema = {}}, values.size(), read, doubts);
  }
};

std::vector<Bytes> behind(std::size_t count, const Bytes& bad, std::vector<Bytes> values) {
  values.insert(values.begin(), count, bad);
  return values;
}

TEST(TellingSample, IsTheFirstThatDecodes) {
  for (const std::string codec : {"auto", "image", "auto:rgb"}) {
    Stored data{behind(9, page(), {image(4), image(5)})};
    EXPECT_EQ(data.telling(codec).sample, 9U) << codec;
    EXPECT_EQ(data.reads, 10U) << codec;
    data.values[0] = image(6);
    EXPECT_EQ(data.telling(codec).sample, 0U) << codec;
    EXPECT_EQ(data.reads, 1U) << codec;
  }
}

TEST(TellingSample, IsLookedForAsLongAsNoneIsWhatTheUserSays) {
  Stored data{behind(200, page(), {image()})};
  EXPECT_EQ(data.telling("image").sample, 200U);
  EXPECT_EQ(data.telling("auto", {.undecodable = true}).sample, 200U);
}

TEST(TellingSample, IsNotLookedForLongAmongValuesThatMayBeAnything) {
  Stored data{std::vector<Bytes>(300, to_bytes("some text"))};
  EXPECT_EQ(data.telling("auto").sample, 0U);
  EXPECT_EQ(data.reads, kFew);
  EXPECT_EQ(data.telling("f32").sample, 0U);
  EXPECT_EQ(data.reads, 1U);
}

TEST(TellingSample, IsThatOfWhichTheMostPartsDecode) {
  const Bytes text = to_bytes("a caption"), number = to_bytes("7");
  const std::string codec = "parts(a=auto,text=auto,n=number)";
  Stored data{behind(3, packed({page(), text, number}),
                     std::vector<Bytes>(100, packed({image(), text, number})))};
  for (const bool skips : {false, true}) {
    const TellingSample telling = data.telling(codec, {.undecodable = skips});
    EXPECT_EQ(telling.sample, 3U);
    EXPECT_EQ(to_string(telling.make("f")->schema()), "a:u8[3x4x4],n:i64[]");
    EXPECT_EQ(data.reads, kFew) << "the text never says what it is";
  }
  data.values[0] = packed({to_bytes(""), text, number});
  EXPECT_EQ(data.telling(codec).sample, 3U);
}

TEST(TellingSample, IsThatOfWhichAPartIsAnImageToTransform) {
  const auto sample = [](const Bytes& image) { return packed({image, to_bytes("a caption")}); };
  Stored data{{sample(page()), sample(image())}};
  const auto read = [&](std::uint64_t id, const RecordSink& sink) {
    sink({.sample = id, .key = {}, .value = data.values[id]});
  };
  const CodecOptions options{.codec = "parts(a=auto,b=auto)", .schema = {}, .transform = "flip"};
  EXPECT_EQ(find_telling_sample(options, 2, read).sample, 1U);
}

TEST(TellingSample, IsOneThatMostAgreeWithWhereThatIsAskedFor) {
  Stored data{{page(), image(6), image(4), page(), image(4), image(5)}};
  EXPECT_EQ(data.telling("auto", {.votes = 8}).sample, 2U);
  EXPECT_EQ(data.telling("auto").sample, 1U);
}

TEST(TellingSample, IsTheFirstOfAllWhereNoneDecodes) {
  Stored data{std::vector<Bytes>(5, page())};
  const Error error = error_from([&] { data.telling("image").make("f"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_EQ(error.where().sample, 0U);
}

TEST(TellingSample, IsNotLookedForLongWhereNothingCanBeRead) {
  Stored data{std::vector<Bytes>(100, image())};
  data.unreadable = 100;
  EXPECT_THROW(data.telling("auto"), Error);
  EXPECT_EQ(data.reads, 1U);
  EXPECT_THROW(data.telling("auto", {.unreadable = true}), Error);
  EXPECT_EQ(data.reads, kFew);
  data.unreadable = 3;
  EXPECT_EQ(data.telling("auto", {.unreadable = true}).sample, 3U);
}

}  // namespace
}  // namespace forebay
