// Training with parameter servers that can be followed by hand: a step's gradient depends on rank
// and step alone, so what parameters must become can be worked out without servers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/mix.hpp"
#include "forebay/parameter_server.hpp"

namespace forebay::test {

inline constexpr float kRate = 0.1F;
inline constexpr float kMomentum = 0.5F;

/// Small multiples of 1/8, so that sums of many ranks are exact in any order.
inline float gradient_of(int rank, std::uint64_t step, std::size_t element) {
  const std::uint64_t key = mix_key({static_cast<std::uint64_t>(rank), step, element});
  return static_cast<float>(static_cast<int>(key % 17) - 8) / 8;
}

inline std::vector<float> gradients_of(int rank, std::uint64_t step, std::size_t count) {
  std::vector<float> gradients(count);
  for (std::size_t i = 0; i < count; ++i) gradients[i] = gradient_of(rank, step, i);
  return gradients;
}

/// Momentum of a shard or of all parameters.
class Momentum {
 public:
  explicit Momentum(std::size_t parameters) : speed_(parameters, 0.0F) {}

  void update(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
              float weight) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      float& speed = speed_[first + i];
      speed = kMomentum * speed + kRate * gradients[i] / weight;
      parameters[i] -= speed;
    }
  }
  /// Divides by the first of what was added; tells the sums.
  UpdateRule rule() {
    return [this](const ShardUpdate& update) {
      this->update(update.first, update.parameters, update.gradients, update.added[0]);
      for (std::size_t i = 0; i < update.told.size(); ++i) update.told[i] = update.added[i];
    };
  }

 private:
  std::vector<float> speed_;
};

}  // namespace forebay::test
