// A network that regresses, small enough to follow by hand: its outputs are its weights, whatever
// the input, so it learns the mean of the targets.
#pragma once

#include <memory>
#include <vector>

#include "train/network.hpp"

namespace forebay {

class MeanOfTargets final : public Network {
 public:
  explicit MeanOfTargets(std::size_t outputs)
      : parameters_(outputs, 0.0F),
        exchange_(outputs + kExchangeTail, 0.0F),
        parts_{{.name = "outputs", .offset = 0, .shape = {outputs}}} {}

  std::span<float> parameters() override { return parameters_; }
  std::span<float> exchange() override { return exchange_; }
  std::size_t statistics_count() const override { return 0; }
  std::span<const Part> parts() const override { return parts_; }

  float forward(const TrainingBatch& batch, std::uint64_t) override {
    const auto count = static_cast<float>(batch.targets.size());
    gradients_.assign(parameters_.size(), 0.0F);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const std::size_t k = i % parameters_.size();
      gradients_[k] += 2 * (parameters_[k] - batch.targets[i]) / count;
    }
    const auto samples = static_cast<float>(batch.count);
    return static_cast<float>(evaluate(batch).loss) / samples;
  }
  void backward(const BackwardPass& pass) override {
    for (std::size_t k = 0; k < gradients_.size(); ++k) {
      gradients()[k] = (pass.add ? gradients()[k] : 0) + pass.weight * gradients_[k];
    }
    if (pass.ready) pass.ready(0);
  }
  Score evaluate(const TrainingBatch& batch) override {
    Score score;
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const float error = parameters_[i % parameters_.size()] - batch.targets[i];
      score.loss += error * error / static_cast<float>(parameters_.size());
    }
    return score;
  }

  static std::unique_ptr<Network> make(const NetworkOptions& options) {
    return std::make_unique<MeanOfTargets>(options.outputs);
  }

 private:
  std::vector<float> parameters_;
  std::vector<float> exchange_;
  std::vector<Part> parts_;
  std::vector<float> gradients_;
};

}  // namespace forebay
