// A network small enough to follow by hand, for testing the trainer without a deep-learning
// library: four weights that learn the mean brightness of the four quarters of an image.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "train/network.hpp"

namespace forebay {

class Quadrants final : public Network {
 public:
  std::span<float> parameters() override { return parameters_; }
  std::span<float> exchange() override { return exchange_; }
  std::size_t statistics_count() const override { return 1; }

  /// The noise takes part, so that a run that draws it differently is found out.
  float forward(const ImageBatch& batch, std::uint64_t noise) override {
    target_ = means(batch);
    target_[0] += static_cast<float>(noise % 1000) * 1e-6F;
    statistics()[0] = 0.9F * statistics()[0] + 0.1F * target_[1];
    return distance(target_);
  }
  void backward() override {
    for (std::size_t k = 0; k < 4; ++k) gradients()[k] = parameters_[k] - target_[k];
  }
  /// Samples with an even label count as correct.
  Score evaluate(const ImageBatch& batch) override {
    Score score;
    if (!batch.labels.empty()) score.loss = distance(means(batch)) + statistics()[0];
    for (const std::int64_t label : batch.labels) score.correct += label % 2 == 0 ? 1 : 0;
    return score;
  }

  static std::unique_ptr<Network> make(const NetworkOptions&) {
    return std::make_unique<Quadrants>();
  }

 private:
  std::array<float, 4> means(const ImageBatch& batch) const {
    std::array<float, 4> sums{};
    const std::size_t width = batch.shape.width;
    const std::size_t height = batch.shape.height;
    for (std::size_t i = 0; i < batch.pixels.size(); ++i) {
      const std::size_t row = i / width % height;
      const std::size_t quarter = (row < height / 2 ? 0 : 2) + (i % width < width / 2 ? 0 : 1);
      sums[quarter] += static_cast<float>(std::to_integer<int>(batch.pixels[i]));
    }
    const float pixels = static_cast<float>(batch.pixels.size()) / 4;
    for (float& sum : sums) sum /= 255 * pixels;
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
  std::vector<float> exchange_ = std::vector<float>(6, 0.0F);
  std::array<float, 4> target_{};
};

}  // namespace forebay
