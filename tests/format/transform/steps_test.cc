// Each step against plain loops of doubles, alone and one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/half.hpp"
#include "forebay/error.hpp"
#include "format/transform/draws.hpp"
#include "tests/format/transform/plain_image.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

class Steps : public testing::Test {
 protected:
  std::size_t pick(std::size_t least, std::size_t most) {
    return least + random_() % (most - least + 1);
  }
  PlainImage any_image(std::size_t most = 40) {
    return random_bytes(random_, pick(0, 1) == 0 ? 1 : 3, pick(1, most), pick(1, most));
  }

  std::mt19937_64 random_{7};
};

TEST_F(Steps, NoneChangesNothing) {
  const PlainImage image = any_image();
  EXPECT_TRUE(Transform().empty());
  EXPECT_EQ(applied("", image), stored_as<std::uint8_t>(image));
}

TEST_F(Steps, ResizeIsAReferenceInDoublesWithinOneLevel) {
  for (int round = 0; round < random_cases(60); ++round) {
    const PlainImage image = any_image();
    const std::size_t height = pick(1, 60), width = pick(1, 60);
    const PlainImage expected = resized(image, height, width);
    const std::string text = "resize=" + std::to_string(height) + "x" + std::to_string(width);
    SCOPED_TRACE(text + " of " + std::to_string(image.height) + "x" + std::to_string(image.width));
    ASSERT_LE(difference<std::uint8_t>(applied(text, image), expected), 0.501);
    const Bytes floats = applied("cast=f32," + text, image);
    ASSERT_LE(difference<float>(floats, expected), 1e-3);
  }
}

TEST_F(Steps, ResizeOfTheShorterSideKeepsTheAspectAsTorchvisionDoes) {
  const auto shape_after = [](const std::string& text, std::uint64_t h, std::uint64_t w) {
    return Transform::parse(text).output({"image", ElementType::u8, {3, h, w}}).shape;
  };
  using Shape = std::vector<std::uint64_t>;
  EXPECT_EQ(shape_after("resize=256", 375, 500), (Shape{3, 256, 341}));
  EXPECT_EQ(shape_after("resize=256", 500, 375), (Shape{3, 341, 256}));
  EXPECT_EQ(shape_after("resize=4", 1, 7), (Shape{3, 4, 28}));
  EXPECT_EQ(shape_after("resize=256,crop=224", 375, 500), (Shape{3, 224, 224}));
}

TEST_F(Steps, CropsAreExactParts) {
  for (int round = 0; round < random_cases(100); ++round) {
    const PlainImage image = any_image();
    const auto height = static_cast<std::uint32_t>(pick(1, image.height));
    const auto width = static_cast<std::uint32_t>(pick(1, image.width));
    const std::string text = "crop=" + std::to_string(height) + "x" + std::to_string(width);
    for (const bool random : {false, true}) {
      const std::uint64_t seed = random_();
      const Box box =
          draw_crop(Crop{height, width, random}, static_cast<std::uint32_t>(image.height),
                    static_cast<std::uint32_t>(image.width), Draws(seed, 0));
      ASSERT_EQ(applied(text + (random ? ":random" : ""), image, seed),
                stored_as<std::uint8_t>(cropped(image, box)));
    }
  }
}

TEST_F(Steps, RandomResizedCropIsTheResizeOfAPart) {
  for (int round = 0; round < random_cases(40); ++round) {
    const PlainImage image = any_image(60);
    const RandomResizedCrop crop{.height = static_cast<std::uint32_t>(pick(1, 30)),
                                 .width = static_cast<std::uint32_t>(pick(1, 30))};
    const std::uint64_t seed = random_();
    const Box box = draw_crop(crop, static_cast<std::uint32_t>(image.height),
                              static_cast<std::uint32_t>(image.width), Draws(seed, 0));
    const PlainImage expected = resized(cropped(image, box), crop.height, crop.width);
    ASSERT_LE(difference<std::uint8_t>(applied(to_text(Step(crop)), image, seed), expected), 0.501)
        << round;
  }
}

TEST_F(Steps, FlipsAndPadsAreExact) {
  const PlainImage image = any_image();
  EXPECT_EQ(applied("flip=1", image), stored_as<std::uint8_t>(flipped(image, false)));
  EXPECT_EQ(applied("vflip=1", image), stored_as<std::uint8_t>(flipped(image, true)));
  EXPECT_EQ(applied("flip=0,vflip=0", image), stored_as<std::uint8_t>(image));
  EXPECT_EQ(applied("pad=3", image), stored_as<std::uint8_t>(padded(image, 3)));
  EXPECT_EQ(applied("pad=0", image), stored_as<std::uint8_t>(image));
  EXPECT_EQ(applied("flip=1,pad=2,vflip=1,crop=3x1", image),
            stored_as<std::uint8_t>(
                cropped(flipped(padded(flipped(image, false), 2), true),
                        draw_crop(Crop{3, 1, false}, static_cast<std::uint32_t>(image.height) + 4,
                                  static_cast<std::uint32_t>(image.width) + 4, Draws(0, 0)))));
}

TEST_F(Steps, ChannelsChange) {
  const PlainImage color = random_bytes(random_, 3, 5, 9), gray = random_bytes(random_, 1, 5, 9);
  EXPECT_LE(difference<std::uint8_t>(applied("gray", color), grayed(color)), 0.5001);
  EXPECT_EQ(applied("gray", gray), stored_as<std::uint8_t>(gray));
  EXPECT_EQ(applied("rgb", gray), stored_as<std::uint8_t>(colored(gray)));
  EXPECT_EQ(applied("rgb", color), stored_as<std::uint8_t>(color));
  EXPECT_EQ(applied("swap", color), stored_as<std::uint8_t>(swapped(color)));
  EXPECT_EQ(applied("swap,swap", color), stored_as<std::uint8_t>(color));
  EXPECT_EQ(applied("swap,gray", color), applied("gray", swapped(color)));
  EXPECT_EQ(applied("rgb,gray", gray), applied("rgb,gray,gray", gray));
  EXPECT_EQ(
      applied("gray,rgb", color),
      applied("rgb", each(grayed(color), [](auto, double v) { return std::floor(v + 0.5); })));
}

TEST_F(Steps, ValuesAreExact) {
  const PlainImage image = random_bytes(random_, 3, 33, 21);
  const float mean[] = {0.485F, 0.456F, 0.406F}, std[] = {0.229F, 0.224F, 0.225F};
  const auto scaled = [](double v) { return static_cast<float>(v) / 255.0F; };
  const PlainImage expected = each(image, [&](std::size_t c, double v) {
    return static_cast<double>((scaled(v) - mean[c]) / std[c]);
  });
  const std::string text = "to-float,normalize=0.485:0.456:0.406/0.229:0.224:0.225";
  EXPECT_EQ(applied(text, image), stored_as<float>(expected));
  // The same where floats are worked on: a flip behind keeps the steps from being the last.
  EXPECT_EQ(applied(text + ",flip=1", image), stored_as<float>(flipped(expected, false)));
  const PlainImage one = each(image, [](auto, double v) { return (v - 104.0) / 2; });
  EXPECT_EQ(applied("cast=f32,normalize=104/2", image), stored_as<float>(one));
  EXPECT_EQ(applied("cast=f64,normalize=104/2", image), stored_as<double>(one));
}

TEST_F(Steps, CastsRoundAndKeepTheRange) {
  const PlainImage image = make_image(1, 1, 6, [](auto, auto, auto x) {
    return std::vector<double>{-3, 0.5, 1.5, 254.6, 300, NAN}[x];
  });
  const Field field = field_of(image, ElementType::f32);
  const auto cast = [&](const std::string& text) {
    return applied(Transform::parse(text), field, stored_as<float>(image));
  };
  EXPECT_THAT(numbers<std::uint8_t>(cast("cast=u8")), testing::ElementsAre(0, 0, 2, 255, 255, 0));
  EXPECT_THAT(numbers<std::int8_t>(cast("cast=i8")), testing::ElementsAre(-3, 0, 2, 127, 127, 0));
  EXPECT_THAT(numbers<std::int64_t>(cast("cast=i64")), testing::ElementsAre(-3, 0, 2, 255, 300, 0));
  EXPECT_THAT(numbers<std::uint8_t>(cast("cast=u8,flip=1")),
              testing::ElementsAre(0, 255, 255, 2, 0, 0));
}

TEST_F(Steps, HalvesAreRoundedOnceAtTheEnd) {
  const PlainImage image = random_bytes(random_, 3, 7, 8);
  const auto halves = numbers<std::uint16_t>(applied("to-float,cast=f16,normalize=0.5/0.3", image));
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float value = (static_cast<float>(image.values[i]) / 255.0F - 0.5F) / 0.3F;
    ASSERT_EQ(halves[i], narrow_float16(value));
  }
  // And read exactly.
  Bytes stored(image.values.size() * 2);
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    const std::uint16_t half = narrow_float16(static_cast<float>(image.values[i]));
    std::memcpy(stored.data() + 2 * i, &half, 2);
  }
  const Field field = field_of(image, ElementType::f16);
  EXPECT_EQ(applied(Transform::parse("flip=0"), field, stored), stored);
  EXPECT_EQ(applied(Transform::parse("cast=f32"), field, stored), stored_as<float>(image));
}

template <typename T>
void expect_read(const PlainImage& image, ElementType type) {
  const Field field = field_of(image, type);
  const PlainImage expected = flipped(image, false);
  EXPECT_EQ(applied(Transform::parse("flip=1"), field, stored_as<T>(image)), stored_as<T>(expected))
      << to_string(type);
}

TEST_F(Steps, EveryTypeOfImagesIsReadAndWritten) {
  const PlainImage image = make_image(3, 6, 700, [](auto c, auto y, auto x) {
    return static_cast<double>((c * 31 + y * 7 + x) % 127);
  });
  expect_read<std::uint8_t>(image, ElementType::u8);
  expect_read<std::int8_t>(image, ElementType::i8);
  expect_read<std::uint16_t>(image, ElementType::u16);
  expect_read<std::int16_t>(image, ElementType::i16);
  expect_read<float>(image, ElementType::f32);
  expect_read<double>(image, ElementType::f64);
}

TEST_F(Steps, LayoutsSayWhereChannelsStand) {
  const PlainImage image = random_bytes(random_, 3, 4, 6);
  const auto mixed = [](const PlainImage& in) {
    Bytes bytes;
    for (std::size_t i = 0; i < in.height * in.width; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        bytes.push_back(static_cast<std::byte>(in.values[c * in.height * in.width + i]));
      }
    }
    return bytes;
  };
  EXPECT_EQ(applied("layout=hwc", image), mixed(image));
  EXPECT_EQ(applied("flip=1,layout=hwc", image), mixed(flipped(image, false)));
  const Field hwc{"image", ElementType::u8, {4, 6, 3}};
  EXPECT_EQ(applied(Transform::parse("from=hwc,flip=1"), hwc, mixed(image)),
            stored_as<std::uint8_t>(flipped(image, false)));
  EXPECT_EQ(to_string(Schema{{Transform::parse("from=hwc,cast=f16,layout=hwc").output(hwc)}}),
            "image:f16[4x6x3]");
  const Bytes floats = applied("to-float,layout=hwc", image);
  EXPECT_EQ(numbers<float>(floats)[1], static_cast<float>(image.at(1, 0, 0)) / 255.0F);
  // Height and width alone are a gray image.
  EXPECT_EQ(to_string(Schema{{Transform::parse("rgb").output({"x", ElementType::u8, {28, 20}})}}),
            "x:u8[3x28x20]");
}

}  // namespace
}  // namespace forebay::test
