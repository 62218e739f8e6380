#include "format/codec/image.hpp"

#include <gtest/gtest.h>

#include "tests/format/codec/fixture.hpp"

namespace forebay::test {
namespace {

Image flat(const ImageShape& shape, int value) {
  return {shape, Bytes(shape.bytes(), static_cast<std::byte>(value))};
}

std::vector<int> values(const Image& image) {
  std::vector<int> result;
  for (const std::byte b : image.pixels) result.push_back(std::to_integer<int>(b));
  return result;
}

Image gray(std::uint32_t height, std::uint32_t width, std::vector<int> values) {
  Image image{{1, height, width}, {}};
  for (const int v : values) image.pixels.push_back(static_cast<std::byte>(v));
  return image;
}

TEST(Resize, TheSameShapeChangesNothing) {
  constexpr ImageShape shape{3, 9, 7};
  EXPECT_EQ(resize({shape, gradient(shape)}, shape).pixels, gradient(shape));
}

TEST(Resize, FlatImagesStayFlatInAnyShape) {
  for (const std::uint32_t side : {1U, 2U, 3U, 7U, 32U, 33U, 100U}) {
    for (const int value : {0, 1, 128, 255}) {
      const Image image = resize(flat({1, 17, 31}, value), {1, side, side + 1});
      EXPECT_EQ(image.shape, (ImageShape{1, side, side + 1}));
      for (const int v : values(image)) EXPECT_EQ(v, value);
    }
  }
}

TEST(Resize, ShrinkingAverages) {
  EXPECT_EQ(values(resize(gray(2, 4, {0, 10, 20, 30, 40, 50, 60, 70}), {1, 1, 2})),
            (std::vector<int>{25, 45}));
  EXPECT_EQ(values(resize(gray(1, 3, {0, 90, 180}), {1, 1, 2})), (std::vector<int>{30, 150}));
}

TEST(Resize, GrowingKeepsEndsAndOrder) {
  const auto wide = values(resize(gray(1, 2, {0, 200}), {1, 1, 8}));
  EXPECT_EQ(wide.front(), 0);
  EXPECT_EQ(wide.back(), 200);
  EXPECT_TRUE(std::is_sorted(wide.begin(), wide.end()));
}

TEST(Resize, ChannelsConvert) {
  const Image color = resize(gray(1, 2, {7, 9}), {3, 1, 2});
  EXPECT_EQ(values(color), (std::vector<int>{7, 9, 7, 9, 7, 9}));
  EXPECT_EQ(values(resize(color, {1, 1, 2})), (std::vector<int>{7, 9}));
  EXPECT_THROW(resize(flat({2, 4, 4}, 1), {3, 4, 4}), Error);
}

}  // namespace
}  // namespace forebay::test
