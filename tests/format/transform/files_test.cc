// Image files: decoding a part is decoding all and cutting it out, and what is left of a file that
// is read at a fraction of its size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "forebay/error.hpp"
#include "format/codec/image.hpp"
#include "tests/format/transform/jpeg_files.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

class Files : public testing::Test {
 protected:
  std::uint32_t pick(std::size_t least, std::size_t most) {
    return static_cast<std::uint32_t>(least + random_() % (most - least + 1));
  }
  PlainImage any_image(std::size_t most) {
    const PlainImage noise =
        random_bytes(random_, pick(0, 3) == 0 ? 1 : 3, pick(1, 12), pick(1, 12));
    return each(resized(noise, pick(1, most), pick(1, most)),
                [](auto, double v) { return std::floor(v); });
  }
  Bytes any_jpeg(const PlainImage& image) {
    constexpr int kSamplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    const auto& sampling = kSamplings[pick(0, 4)];
    return jpeg_of(image, {.across = sampling[0],
                           .down = sampling[1],
                           .progressive = pick(0, 3) == 0,
                           .restart = pick(0, 2) == 0 ? 3 : 0});
  }

  std::mt19937_64 random_{11};
};

Bytes applied_to_file(const std::string& text, std::span<const std::byte> file,
                      std::uint64_t seed = 0) {
  const Transform transform = Transform::parse(text);
  Bytes out(transform.output_of_file(file).bytes());
  transform.apply_to_file(file, seed, out);
  return out;
}

/// The same by decoding all of the file first.
Bytes applied_to_pixels(const std::string& text, std::span<const std::byte> file,
                        std::uint64_t seed) {
  const Image image = decode_image(file);
  const Field field{
      "image", ElementType::u8, {image.shape.channels, image.shape.height, image.shape.width}};
  return applied(Transform::parse(text), field, image.pixels, seed);
}

TEST_F(Files, PartsHaveThePixelsOfTheWhole) {
  for (int round = 0; round < random_cases(400); ++round) {
    const PlainImage plain = any_image(150);
    const bool png = pick(0, 9) == 0;
    const ImageShape shape{static_cast<std::uint32_t>(plain.channels),
                           static_cast<std::uint32_t>(plain.height),
                           static_cast<std::uint32_t>(plain.width)};
    const Bytes file = png ? encode_png(shape, stored_as<std::uint8_t>(plain)) : any_jpeg(plain);
    const std::uint32_t height = pick(1, plain.height), width = pick(1, plain.width);
    const std::string crop =
        "crop=" + std::to_string(height) + "x" + std::to_string(width) + ":random,flip";
    SCOPED_TRACE(crop + " of " + to_string(shape) + ", round " + std::to_string(round));
    const std::uint64_t seed = random_();
    ASSERT_EQ(applied_to_file(crop, file, seed), applied_to_pixels(crop, file, seed));
    const std::string resize = "full-decode,random-resized-crop=" + std::to_string(pick(1, 40)) +
                               "x" + std::to_string(pick(1, 40));
    ASSERT_EQ(applied_to_file(resize, file, seed), applied_to_pixels(resize, file, seed));
    const std::string both = "full-decode,resize=33x47,crop=20x9:random";
    ASSERT_EQ(applied_to_file(both, file, seed), applied_to_pixels(both, file, seed));
  }
}

TEST_F(Files, PartsOfAFractionHaveThePixelsOfTheWholeFraction) {
  Spare spare;
  for (int round = 0; round < random_cases(200); ++round) {
    const PlainImage plain = any_image(150);
    const Bytes file = any_jpeg(plain);
    const unsigned shrink = 1U << pick(0, 3);
    const std::uint32_t height = shrunk(static_cast<std::uint32_t>(plain.height), shrink);
    const std::uint32_t width = shrunk(static_cast<std::uint32_t>(plain.width), shrink);
    Bytes whole(plain.channels * height * width);
    open_image(file)->read({0, 0, width, height}, shrink, whole, spare);
    Box box{pick(0, width - 1), pick(0, height - 1), 0, 0};
    box.width = pick(1, width - box.x);
    box.height = pick(1, height - box.y);
    Bytes part(plain.channels * box.pixels());
    open_image(file)->read(box, shrink, part, spare);
    const std::size_t row = box.width * plain.channels;
    for (std::size_t y = 0; y < box.height; ++y) {
      const auto in_whole =
          std::span(whole).subspan(((box.y + y) * width + box.x) * plain.channels, row);
      ASSERT_TRUE(std::ranges::equal(in_whole, std::span(part).subspan(y * row, row)))
          << "round " << round << ", row " << y << ", 1/" << shrink;
    }
  }
}

TEST_F(Files, FractionsStayCloseToFullDecoding) {
  for (int round = 0; round < random_cases(30); ++round) {
    // Slopes: what a fraction loses is detail, and what it must not do is shift the image.
    const PlainImage plain =
        each(resized(random_bytes(random_, 3, 2, 2), pick(90, 200), pick(90, 200)),
             [](auto, double v) { return std::floor(v); });
    const Bytes file = any_jpeg(plain);
    for (const std::string text : {"random-resized-crop=8", "resize=20x40", "resize=10,crop=7x9"}) {
      const std::uint64_t seed = random_();
      const auto small = numbers<std::uint8_t>(applied_to_file(text, file, seed));
      const auto full = numbers<std::uint8_t>(applied_to_file("full-decode," + text, file, seed));
      ASSERT_EQ(small.size(), full.size());
      double sum = 0;
      for (std::size_t i = 0; i < small.size(); ++i) sum += std::abs(small[i] - full[i]);
      ASSERT_LE(sum / static_cast<double>(small.size()), 3) << text << ", round " << round;
      ASSERT_EQ(numbers<std::uint8_t>(applied_to_file(text, file, seed)), small);
    }
  }
}

TEST_F(Files, DamageIsCorruptWhereItIsNeeded) {
  const PlainImage plain = random_bytes(random_, 3, 64, 64);
  const Bytes file = jpeg_of(plain, {});
  Bytes out(3 * 64 * 64);
  for (std::size_t size = 0; size < file.size(); size += 7) {
    const auto cut = std::span(file).first(size);
    try {
      Transform::parse("flip").apply_to_file(cut, 0, out);
      ADD_FAILURE() << size;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::corrupt) << size;
    }
  }
  // A workspace that has met damage serves the next image.
  EXPECT_EQ(applied_to_file("flip=1", file), applied_to_pixels("flip=1", file, 0));
}

TEST_F(Files, OneTransformServesManyThreads) {
  std::vector<Bytes> files;
  for (int i = 0; i < 8; ++i) files.push_back(any_jpeg(any_image(80)));
  const Transform transform = Transform::parse("rgb,random-resized-crop=20,flip,to-float");
  const auto run_all = [&] {
    std::vector<Bytes> outs;
    for (std::uint64_t i = 0; i < 40; ++i) {
      outs.emplace_back(4 * 3 * 20 * 20);
      transform.apply_to_file(files[i % files.size()], i, outs.back());
    }
    return outs;
  };
  const auto expected = run_all();
  std::vector<std::vector<Bytes>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& outs : found) threads.emplace_back([&outs, &run_all] { outs = run_all(); });
  }
  for (const auto& outs : found) EXPECT_TRUE(outs == expected);
}

TEST_F(Files, OddShapesAreResized) {
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{1, 300}, {300, 1}, {1, 1}}) {
    const Bytes file = jpeg_of(random_bytes(random_, 3, height, width), {});
    EXPECT_EQ(applied_to_file("random-resized-crop=32", file, 3).size(), 3U * 32 * 32);
    EXPECT_EQ(applied_to_file("resize=5,crop=5", file).size(), 3U * 5 * 5);
    EXPECT_THROW(applied_to_file("crop=2", file), Error);
    EXPECT_EQ(applied_to_file("pad=1,crop=2", file).size(), 3U * 2 * 2);
  }
}

}  // namespace
}  // namespace forebay::test
