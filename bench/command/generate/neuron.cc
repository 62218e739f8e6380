// What three electrodes in a neuron measure, as in paper 003, IV-A: a series of 1600 x 3 f32, and
// 19 properties of the cell in (-1, 1) that it tells.
//
// Three compartments in a row, each a leaky integrator of the same stimulus that fires where it
// reaches its threshold (in units of a typical threshold; time in steps):
//
//   dV/dt = (E - V + R * stimulus(t) + c * (V of its neighbours - V)) / tau
//   V >= theta: three steps of height H are seen, then V = E - depth
//
// Of each compartment: E, R, tau, theta, H, depth; of the cell: c. The stimulus is the same for
// all: steps of several heights under a tone that rises.
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "bench/command/generate/maker.hpp"

namespace forebay::generate {
namespace {

constexpr std::size_t kCompartments = 3;
constexpr std::size_t kProperties = 6;  // of a compartment
constexpr std::size_t kTargets = kCompartments * kProperties + 1;
constexpr int kSpikeSteps = 3;
constexpr float kNoise = 0.02F;

/// What six numbers in (-1, 1) mean.
struct Compartment {
  float rest;
  float resistance;
  float tau;
  float threshold;
  float height;
  float depth;
  float potential = 0;
  int spike = 0;  ///< steps for which it is still seen

  explicit Compartment(const float* unit)
      : rest(0.3F * unit[0]),
        resistance(std::exp(0.5F * unit[1])),
        tau(20 * std::exp(0.7F * unit[2])),
        threshold(1 + 0.3F * unit[3]),
        height(2 + unit[4]),
        depth(0.6F + 0.5F * unit[5]),
        potential(rest) {}

  /// Goes one step on; what is seen then.
  float step(float stimulus, float inflow) {
    if (spike > 0) {
      if (--spike == 0) potential = rest - depth;
      return height;
    }
    potential += (rest - potential + resistance * stimulus + inflow) / tau;
    if (potential < threshold) return potential;
    spike = kSpikeSteps;
    return height;
  }
};

/// Five steps of rising height, a third of the time each, and a tone over all.
std::vector<float> stimulus_of(std::size_t length) {
  std::vector<float> stimulus(length);
  for (std::size_t i = 0; i < length; ++i) {
    const float time = static_cast<float>(i) / static_cast<float>(length);
    const float fifth = std::floor(time * 5);
    const bool on = time * 5 - fifth > 0.33F;
    const float tone = std::sin(2 * std::numbers::pi_v<float> * (4 * time + 12 * time * time));
    stimulus[i] = (on ? 0.4F + 0.35F * fifth : 0.0F) + 0.25F * tone;
  }
  return stimulus;
}

class Neuron final : public Maker {
 public:
  explicit Neuron(const Options& options)
      : seed_(options.seed),
        stimulus_(stimulus_of(options.length)),
        input_{"x", ElementType::f32, {options.length, kCompartments}},
        target_{"y", ElementType::f32, {kTargets}} {}

  const Field& input() const override { return input_; }
  const Field& target() const override { return target_; }

  void make(std::uint64_t sample, std::span<std::byte> input, std::span<float> target) override {
    for (std::size_t i = 0; i < target.size(); ++i) {
      target[i] = static_cast<float>(uniform(mix_key({seed_, sample, i})));
    }
    std::vector<Compartment> cell;
    for (std::size_t i = 0; i < kCompartments; ++i) {
      cell.emplace_back(target.data() + i * kProperties);
    }
    const float coupling = 0.3F + 0.3F * target.back();
    const std::uint64_t noise = mix_key({seed_, sample, kTargets});
    for (std::size_t i = 0; i < stimulus_.size(); ++i) {
      std::array<float, kCompartments> seen = step(cell, stimulus_[i], coupling);
      for (std::size_t k = 0; k < seen.size(); ++k) {
        seen[k] += kNoise * bell(noise + (i * kCompartments + k) * kGolden);
      }
      std::memcpy(input.data() + i * sizeof seen, seen.data(), sizeof seen);
    }
  }

 private:
  static std::array<float, kCompartments> step(std::vector<Compartment>& cell, float stimulus,
                                               float coupling) {
    std::array<float, kCompartments> before{}, seen{};
    for (std::size_t k = 0; k < kCompartments; ++k) before[k] = cell[k].potential;
    for (std::size_t k = 0; k < kCompartments; ++k) {
      float inflow = 0;
      if (k > 0) inflow += coupling * (before[k - 1] - before[k]);
      if (k + 1 < kCompartments) inflow += coupling * (before[k + 1] - before[k]);
      seen[k] = cell[k].step(stimulus, inflow);
    }
    return seen;
  }

  std::uint64_t seed_;
  std::vector<float> stimulus_;
  Field input_;
  Field target_;
};

}  // namespace

std::unique_ptr<Maker> make_neuron(const Options& options) {
  return std::make_unique<Neuron>(options);
}

}  // namespace forebay::generate
