// What is random: published numbers, the same on every machine and in every version.
#include "format/transform/draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/mix.hpp"

namespace forebay {
namespace {

TEST(Draws, AreTheDocumentedNumbers) {
  const std::uint64_t key = mix_key({42, 3});
  Draws fractions(42, 3), integers(42, 3);
  for (std::uint64_t n = 0; n < 5; ++n) {
    const std::uint64_t x = mix(key + (n + 1) * kGolden);
    EXPECT_EQ(fractions.fraction(), static_cast<double>(x >> 11) / 9007199254740992.0);
    __extension__ using Wide = unsigned __int128;
    EXPECT_EQ(integers.below(1000), static_cast<std::uint32_t>((Wide{x} * 1000) >> 64));
  }
}

TEST(Draws, OfCropsArePublished) {
  const RandomResizedCrop crop{.height = 224, .width = 224};
  std::string text;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Box box = draw_crop(crop, 375, 500, Draws(seed, 0));
    const Box part = draw_crop(Crop{224, 224, true}, 375, 500, Draws(seed, 1));
    text += std::to_string(box.x) + "," + std::to_string(box.y) + "," + std::to_string(box.width) +
            "x" + std::to_string(box.height) + " " + std::to_string(part.x) + "," +
            std::to_string(part.y) + (draw_flip(Flip(), Draws(seed, 2)) ? " flipped; " : "; ");
  }
  // As 20 lines of Python make them of the documentation alone.
  EXPECT_EQ(text,
            "196,3,270x249 46,46; "
            "137,57,316x251 181,17 flipped; "
            "124,28,258x197 74,128; "
            "193,143,147x167 190,37; "
            "69,25,362x331 245,12 flipped; "
            "71,16,373x328 141,150 flipped; ");
}

TEST(Draws, OfCropsKeepTheirRanges) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    const auto height = static_cast<std::uint32_t>(1 + random() % 300);
    const auto width = static_cast<std::uint32_t>(1 + random() % 300);
    const RandomResizedCrop crop{.height = 9, .width = 9};
    const Box box = draw_crop(crop, height, width, Draws(random(), 0));
    ASSERT_GE(box.width, 1U);
    ASSERT_GE(box.height, 1U);
    ASSERT_LE(box.x + box.width, width);
    ASSERT_LE(box.y + box.height, height);
    if (height < 100 || width < 100) continue;
    const double area = static_cast<double>(box.pixels()) / (height * width);
    ASSERT_GE(area, 0.07);
  }
  // Where no trial can fit: the largest part in the middle.
  const RandomResizedCrop wide{.height = 9, .width = 9, .least_area = 1, .most_area = 1};
  EXPECT_EQ(draw_crop(wide, 10, 100, Draws(1, 0)), (Box{43, 0, 13, 10}));
  EXPECT_EQ(draw_crop(wide, 100, 10, Draws(1, 0)), (Box{0, 43, 10, 13}));
  EXPECT_EQ(draw_crop(wide, 1, 100, Draws(1, 0)), (Box{49, 0, 1, 1}));
}

TEST(Draws, CenterCropsStartWhereTorchvisionsDo) {
  const auto top = [](std::uint32_t height, std::uint32_t crop) {
    return draw_crop(Crop{crop, 1, false}, height, 1, Draws(0, 0)).y;
  };
  EXPECT_EQ(top(256, 224), 16U);
  EXPECT_EQ(top(5, 2), 2U);  // 1.5
  EXPECT_EQ(top(7, 2), 2U);  // 2.5
  EXPECT_EQ(top(3, 2), 0U);  // 0.5
}

TEST(Draws, FlipsAreFair) {
  int flips = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    flips += draw_flip(Flip{.vertical = false, .probability = 0.25}, Draws(seed, 0)) ? 1 : 0;
  }
  EXPECT_NEAR(flips, 1000, 120);
}

TEST(Draws, OwnLogarithmAndExponentialAreRight) {
  for (double x = 0.01; x <= 100; x *= 1.07) {
    EXPECT_NEAR(plain_log(x), std::log(x), 1e-14 * std::max(1.0, std::abs(std::log(x))));
    EXPECT_NEAR(plain_exp(plain_log(x)) / x, 1, 1e-13);
  }
}

}  // namespace
}  // namespace forebay
