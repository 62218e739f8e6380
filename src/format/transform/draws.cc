// Compiled without fused operations (src/CMakeLists.txt): the last bit of a sum may decide which
// pixel a crop starts at.
#include "format/transform/draws.hpp"

#include <cmath>

#include "core/mix.hpp"

namespace forebay {
namespace {

constexpr int kTrials = 10;

/// round() of Python and torchvision: ties to even. `twice` is not negative.
std::uint32_t half_of(std::uint32_t twice) {
  const std::uint32_t half = twice / 2;
  return half + (twice % 2 == 1 && half % 2 == 1 ? 1 : 0);
}

std::uint32_t rounded(double value) { return static_cast<std::uint32_t>(std::nearbyint(value)); }

/// Sides above any image's are all alike too large.
bool fits(double side, std::uint32_t most) {
  const double whole = std::nearbyint(side);
  return whole >= 1 && whole <= most;
}

Box middle_part(const RandomResizedCrop& crop, std::uint32_t height, std::uint32_t width) {
  Box box{0, 0, width, height};
  const double aspect = static_cast<double>(width) / height;
  if (aspect < crop.least_aspect) {
    box.height = std::max(1U, std::min(height, rounded(width / crop.least_aspect)));
  } else if (aspect > crop.most_aspect) {
    box.width = std::max(1U, std::min(width, rounded(height * crop.most_aspect)));
  }
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
  return box;
}

}  // namespace

Draws::Draws(std::uint64_t seed, std::uint64_t step) : key_(mix_key({seed, step})) {}

std::uint64_t Draws::next() {
  key_ += kGolden;
  return mix(key_);
}

double Draws::fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

std::uint32_t Draws::below(std::uint32_t count) {
  const std::uint64_t x = next();
  // The upper 64 of 96 bits: floor(x * count / 2^64).
  const std::uint64_t low = (x & 0xffffffff) * count;
  return static_cast<std::uint32_t>(((x >> 32) * count + (low >> 32)) >> 32);
}

bool is_random(const Step& step) {
  const auto* crop = std::get_if<Crop>(&step);
  return std::holds_alternative<Flip>(step) || std::holds_alternative<RandomResizedCrop>(step) ||
         (crop != nullptr && crop->random);
}

bool draw_flip(const Flip& flip, Draws draws) { return draws.fraction() < flip.probability; }

Box draw_crop(const Crop& crop, std::uint32_t height, std::uint32_t width, Draws draws) {
  Box box{0, 0, crop.width, crop.height};
  const std::uint32_t spare_height = height - crop.height, spare_width = width - crop.width;
  if (crop.random) {
    box.y = draws.below(spare_height + 1);
    box.x = draws.below(spare_width + 1);
  } else {
    box.y = half_of(spare_height);
    box.x = half_of(spare_width);
  }
  return box;
}

Box draw_crop(const RandomResizedCrop& crop, std::uint32_t height, std::uint32_t width,
              Draws draws) {
  const double area = static_cast<double>(height) * width;
  const double least = plain_log(crop.least_aspect), most = plain_log(crop.most_aspect);
  for (int trial = 0; trial < kTrials; ++trial) {
    const double target = area * draws.between(crop.least_area, crop.most_area);
    const double aspect = plain_exp(draws.between(least, most));
    const double wide = std::sqrt(target * aspect), high = std::sqrt(target / aspect);
    if (!fits(wide, width) || !fits(high, height)) continue;
    Box box{0, 0, rounded(wide), rounded(high)};
    box.y = draws.below(height - box.height + 1);
    box.x = draws.below(width - box.width + 1);
    return box;
  }
  return middle_part(crop, height, width);
}

double plain_exp(double x) {
  // The series converges fast for x / 64; six squarings bring the result back.
  const double small = x / 64;
  double sum = 1;
  for (int i = 14; i >= 1; --i) sum = 1 + sum * small / i;
  for (int i = 0; i < 6; ++i) sum *= sum;
  return sum;
}

double plain_log(double x) {
  constexpr double kLogOf2 = 0.6931471805599453;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // in [1/2, 1)
  // log f = 2 artanh((f - 1) / (f + 1)), of which the argument is at most a third.
  const double z = (fraction - 1) / (fraction + 1);
  double sum = 0;
  for (int i = 41; i >= 1; i -= 2) sum = sum * z * z + 1.0 / i;
  return exponent * kLogOf2 + 2 * z * sum;
}

}  // namespace forebay
