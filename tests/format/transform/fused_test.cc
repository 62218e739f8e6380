// Steps in any order: what is fused is what plain loops make of them one by one.
#include <gtest/gtest.h>

#include "format/transform/draws.hpp"
#include "tests/format/transform/plain_image.hpp"
#include "tests/support/scale.hpp"

namespace forebay::test {
namespace {

/// Random steps, and what the oracle has made of an image so far.
class AnySteps {
 public:
  explicit AnySteps(std::mt19937_64& random)
      : random_(random),
        image_(random_bytes(random, pick(0, 1) == 0 ? 1 : 3, pick(1, 30), pick(1, 30))),
        expected_(image_),
        seed_(random()) {
    for (std::size_t steps = pick(1, 6); steps > 0; --steps) add_step();
  }

  const std::string& text() const { return text_; }
  const PlainImage& image() const { return image_; }
  const PlainImage& expected() const { return expected_; }
  std::uint64_t seed() const { return seed_; }

 private:
  std::uint32_t pick(std::size_t least, std::size_t most) {
    return static_cast<std::uint32_t>(least + random_() % (most - least + 1));
  }
  std::uint32_t height() const { return static_cast<std::uint32_t>(expected_.height); }
  std::uint32_t width() const { return static_cast<std::uint32_t>(expected_.width); }

  void add_step() {
    switch (pick(0, 5)) {
      case 0:
        return add_resize();
      case 1:
        return add_crop();
      case 2:
        return add_random_resized_crop();
      case 3:
        return add_flip();
      case 4:
        return add_pad();
      default:
        return add_values();
    }
  }

  void add_resize() {
    const Resize resize{pick(1, 40), pick(1, 40)};
    text_ += "," + to_text(Step(resize));
    expected_ = resized(expected_, resize.height, resize.width);
  }

  void add_crop() {
    const Crop crop{pick(1, height()), pick(1, width()), pick(0, 1) == 1};
    text_ += "," + to_text(Step(crop));
    expected_ = cropped(expected_, draw_crop(crop, height(), width(), Draws(seed_, drawn_)));
    if (crop.random) ++drawn_;
  }

  void add_random_resized_crop() {
    const RandomResizedCrop crop{.height = pick(1, 20), .width = pick(1, 20)};
    text_ += "," + to_text(Step(crop));
    const Box box = draw_crop(crop, height(), width(), Draws(seed_, drawn_++));
    expected_ = resized(cropped(expected_, box), crop.height, crop.width);
  }

  void add_flip() {
    const Flip flip{.vertical = pick(0, 1) == 1};
    text_ += "," + to_text(Step(flip));
    if (draw_flip(flip, Draws(seed_, drawn_++))) expected_ = flipped(expected_, flip.vertical);
  }

  void add_pad() {
    const Pad pad{pick(0, 4)};
    text_ += "," + to_text(Step(pad));
    expected_ = padded(expected_, pad.by);
  }

  void add_values() {
    if (pick(0, 2) == 0) {
      text_ += ",gray";
      expected_ = grayed(expected_);
    } else if (pick(0, 1) == 0) {
      text_ += ",rgb,swap";
      expected_ = swapped(colored(expected_));
    } else {
      text_ += ",normalize=7/2";
      expected_ = each(expected_, [](auto, double v) { return (v - 7) / 2; });
    }
  }

  std::mt19937_64& random_;
  PlainImage image_, expected_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::string text_ = "cast=f32";
};

TEST(Fused, StepsAreTheStepsOneByOne) {
  std::mt19937_64 random(13);
  for (int round = 0; round < random_cases(300); ++round) {
    const AnySteps steps(random);
    SCOPED_TRACE(steps.text());
    ASSERT_LE(
        difference<float>(applied(steps.text(), steps.image(), steps.seed()), steps.expected()),
        2e-3);
  }
}

}  // namespace
}  // namespace forebay::test
