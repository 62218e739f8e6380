// Cubes of matter, as in paper 003, IV-A: u16 counts, side x side x side x channels, and four
// parameters in (-1, 1) that the counts tell.
//
//   g        random field of variance about 1: for each spacing 1, 2, 4, ... noise on a grid of it,
//            interpolated in between, weighted by spacing^n           parameter 1: n
//            a part of it on grids 4 times as wide along one axis     parameter 2: that part
//   h        g made skew, again of mean 0 and variance about 1:
//            (exp(t g) - e^(t^2/2)) / its deviation                    parameter 3: t
//   count    mean * max(0, 1 + s * growth * h)                          parameter 4: s
//
// The paper's channels are parts of a universe at four redshifts: here channel c is part c / 4 at
// redshift c % 4, of the same g with its own growth.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "bench/command/generate/maker.hpp"

namespace forebay::generate {
namespace {

constexpr std::uint64_t kRedshifts = 4;
constexpr std::array<float, kRedshifts> kGrowth{1.0F, 0.8F, 0.6F, 0.4F};
constexpr float kMeanCount = 4;

/// What the four numbers in (-1, 1) mean.
struct Universe {
  float slope;      ///< n
  float stretched;  ///< part of the variance
  float skewness;   ///< t
  float amplitude;  ///< s

  explicit Universe(std::span<const float> unit)
      : slope(unit[0]),
        stretched(0.5F + 0.5F * unit[1]),
        skewness(0.6F + 0.5F * unit[2]),
        amplitude(0.6F * std::exp(0.8F * unit[3])) {}
};

/// Where a point of the cube lies between two points of a grid.
struct Between {
  std::size_t low;
  float high_part;
};

std::vector<Between> places(std::size_t side, std::size_t spacing) {
  std::vector<Between> found(side);
  for (std::size_t i = 0; i < side; ++i) {
    found[i] = {i / spacing, static_cast<float>(i % spacing) / static_cast<float>(spacing)};
  }
  return found;
}

float mixed(float low, float high, float part) { return low + part * (high - low); }

class Cosmoflow final : public Maker {
 public:
  explicit Cosmoflow(const Options& options)
      : side_(options.side),
        channels_(options.channels),
        seed_(options.seed),
        input_{"3Dmap", ElementType::u16, {side_, side_, side_, channels_}},
        target_{"unitPar", ElementType::f32, {4}},
        field_(side_ * side_ * side_) {}

  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }

  void make(std::uint64_t sample, std::span<std::byte> input, std::span<float> target) override {
    for (std::size_t i = 0; i < target.size(); ++i) {
      target[i] = static_cast<float>(uniform(mix_key({seed_, sample, i})));
    }
    const Universe universe(target);
    for (std::uint64_t first = 0; first < channels_; first += kRedshifts) {
      make_field(universe, mix_key({seed_, sample, 4 + first}));
      const std::uint64_t end = std::min(channels_, first + kRedshifts);
      for (std::uint64_t channel = first; channel < end; ++channel) {
        count(universe, channel, input);
      }
    }
  }

 private:
  void make_field(const Universe& universe, std::uint64_t key) {
    std::ranges::fill(field_, 0.0F);
    std::vector<float> weights;
    float variance = 0;
    for (std::size_t spacing = 1; spacing <= std::max<std::size_t>(1, side_ / 4); spacing *= 2) {
      weights.push_back(std::pow(static_cast<float>(spacing), universe.slope));
      variance += weights.back() * weights.back();
    }
    for (std::size_t level = 0; level < weights.size(); ++level) {
      const float weight = weights[level] / std::sqrt(variance);
      const std::size_t spacing = std::size_t{1} << level;
      add_noise(spacing, spacing, weight * std::sqrt(1 - universe.stretched),
                mix_key({key, level, 0}));
      add_noise(spacing, 4 * spacing, weight * std::sqrt(universe.stretched),
                mix_key({key, level, 1}));
    }
  }

  /// Interpolated linearly along each axis; `last` is the spacing along the last one.
  void add_noise(std::size_t spacing, std::size_t last, float weight, std::uint64_t key) {
    const std::size_t points = side_ / spacing + 2;
    const std::size_t last_points = side_ / last + 2;
    grid_.resize(points * points * last_points);
    for (std::size_t i = 0; i < grid_.size(); ++i) grid_[i] = weight * bell(key + i * kGolden);
    const auto across = places(side_, spacing);
    const auto along = places(side_, last);
    float* to = field_.data();
    for (const Between& x : across) {
      for (const Between& y : across) {
        const float* corner = grid_.data() + (x.low * points + y.low) * last_points;
        row(corner, points * last_points, last_points, x.high_part, y.high_part, along, to);
        to += side_;
      }
    }
  }

  /// One row of the field: the four rows of the grid around it are mixed once for all.
  void row(const float* corner, std::size_t to_x, std::size_t to_y, float x, float y,
           const std::vector<Between>& along, float* to) {
    row_.resize(to_y);
    for (std::size_t i = 0; i < to_y; ++i) {
      const float* at = corner + i;
      row_[i] = mixed(mixed(at[0], at[to_y], y), mixed(at[to_x], at[to_x + to_y], y), x);
    }
    for (std::size_t i = 0; i < along.size(); ++i) {
      to[i] += mixed(row_[along[i].low], row_[along[i].low + 1], along[i].high_part);
    }
  }

  void count(const Universe& universe, std::uint64_t channel, std::span<std::byte> input) const {
    const float t = universe.skewness;
    const float mean = std::exp(t * t / 2);
    const float deviation = mean * std::sqrt(std::exp(t * t) - 1);
    const float strength = universe.amplitude * kGrowth[channel % kRedshifts] / deviation;
    for (std::size_t i = 0; i < field_.size(); ++i) {
      const float density = 1 + strength * (std::exp(t * field_[i]) - mean);
      const float most = 65535;
      const auto number =
          static_cast<std::uint16_t>(std::lround(std::clamp(kMeanCount * density, 0.0F, most)));
      std::memcpy(input.data() + (i * channels_ + channel) * sizeof number, &number, sizeof number);
    }
  }

  std::uint64_t side_;
  std::uint64_t channels_;
  std::uint64_t seed_;
  Field input_;
  Field target_;
  std::vector<float> field_;
  std::vector<float> grid_;
  std::vector<float> row_;
};

}  // namespace

std::unique_ptr<Maker> make_cosmoflow(const Options& options) {
  return std::make_unique<Cosmoflow>(options);
}

}  // namespace forebay::generate
