// What is random about a step, from the seed of a sample. forebay/transform.hpp has the numbers.
#pragma once

#include <cstdint>

#include "format/codec/image_reader.hpp"
#include "format/transform/steps.hpp"

namespace forebay {

/// The numbers of one random step.
class Draws {
 public:
  /// `step`: how many random steps of the transform come before it.
  Draws(std::uint64_t seed, std::uint64_t step);

  /// In [0, 1).
  double fraction();
  /// In [least, most].
  double between(double least, double most) { return least + (most - least) * fraction(); }
  /// One of 0 to count - 1.
  std::uint32_t below(std::uint32_t count);

 private:
  std::uint64_t next();

  std::uint64_t key_;
};

bool is_random(const Step& step);

bool draw_flip(const Flip& flip, Draws draws);
/// The part of an image of that size, which is at least as large.
Box draw_crop(const Crop& crop, std::uint32_t height, std::uint32_t width, Draws draws);
/// As torchvision's RandomResizedCrop.get_params: up to ten trials of an area and an aspect ratio
/// (its logarithm is uniform); after them the largest part in the middle with a fitting ratio.
Box draw_crop(const RandomResizedCrop& crop, std::uint32_t height, std::uint32_t width,
              Draws draws);

// Of additions and multiplications alone, so that all machines get the same last bit. To 1e-14.

/// |x| <= 10.
double plain_exp(double x);
/// x > 0.
double plain_log(double x);

}  // namespace forebay
