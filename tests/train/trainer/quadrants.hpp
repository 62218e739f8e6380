// A network small enough to follow by hand, for testing the trainer without a deep-learning
// library: four weights that learn the mean brightness of the four quarters of an image.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "train/network.hpp"

namespace forebay {

class Quadrants : public Network {
 public:
  std::span<float> parameters() override { return parameters_; }
  std::span<float> exchange() override { return exchange_; }
  std::size_t statistics_count() const override { return 1; }
  std::span<const Part> parts() const override { return parts_; }

  /// Mean over the samples of half the squared distance between weights and quarters.
  /// The noise takes part, so that a run that draws it differently is found out.
  float forward(const TrainingBatch& batch, std::uint64_t noise) override {
    const auto count = static_cast<float>(batch.count);
    float loss = 0;
    mean_ = {};
    for (std::size_t i = 0; i < batch.count; ++i) {
      const std::array<float, 4> sample = quarters(batch, i);
      loss += distance(sample) / count;
      for (std::size_t k = 0; k < 4; ++k) mean_[k] += sample[k] / count;
    }
    mean_[0] += static_cast<float>(noise % 1000) * 1e-7F;
    statistics()[0] = 0.9F * statistics()[0] + 0.1F * mean_[1];
    return loss;
  }
  void backward(const BackwardPass& pass) override {
    for (const std::size_t part : {1U, 0U}) {
      for (std::size_t k = 2 * part; k < 2 * part + 2; ++k) {
        const float gradient = pass.weight * (parameters_[k] - mean_[k]);
        gradients()[k] = pass.add ? gradients()[k] + gradient : gradient;
      }
      if (pass.ready) pass.ready(part);
    }
  }
  /// Samples with an even label count as correct.
  Score evaluate(const TrainingBatch& batch) override {
    Score score;
    for (std::size_t i = 0; i < batch.count; ++i) {
      score.loss += distance(quarters(batch, i)) + statistics()[0];
      score.correct += batch.labels[i] % 2 == 0 ? 1 : 0;
    }
    return score;
  }

  static std::unique_ptr<Network> make(const NetworkOptions&) {
    return std::make_unique<Quadrants>();
  }

 private:
  static std::array<float, 4> quarters(const TrainingBatch& batch, std::size_t sample) {
    const std::size_t size = elements_of(batch.shape);
    const std::size_t height = batch.shape[1], width = batch.shape[2];
    const std::span<const std::byte> pixels = batch.inputs.subspan(sample * size, size);
    std::array<float, 4> sums{};
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t lower = i / width < height / 2 ? 0 : 2;
      const std::size_t right = i % width < width / 2 ? 0 : 1;
      const auto brightness = static_cast<float>(std::to_integer<int>(pixels[i])) / 255;
      sums[lower + right] += 4 * brightness / static_cast<float>(size);
    }
    return sums;
  }
  float distance(const std::array<float, 4>& target) const {
    float sum = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      sum += (parameters_[k] - target[k]) * (parameters_[k] - target[k]) / 2;
    }
    return sum;
  }

  std::vector<float> parameters_ = std::vector<float>(4, 0.0F);
  std::vector<float> exchange_ = std::vector<float>(5 + kExchangeTail, 0.0F);
  std::vector<Part> parts_{{.name = "upper", .offset = 0, .shape = {2}},
                           {.name = "lower", .offset = 2, .shape = {2}}};
  std::array<float, 4> mean_{};
};

}  // namespace forebay
