// Stochastic gradient descent with momentum and weight decay, in Caffe's form:
//
//   v <- momentum * v + rate * (g + weight_decay * w)
//   w <- w - v
//
// Plain loops over flat arrays: the same numbers on every rank, in every run. Local.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace forebay {

/// How the learning rate changes with the iteration i (Caffe's names and formulas).
enum class RatePolicy : std::uint8_t {
  fixed,  ///< rate
  step,   ///< rate * gamma ^ floor(i / step)
  inv,    ///< rate * (1 + gamma * i) ^ -power
};

std::string_view to_string(RatePolicy policy);
/// Throws usage, listing the names there are.
RatePolicy parse_rate_policy(std::string_view text);

struct SolverOptions {
  double rate = 0.01;
  RatePolicy policy = RatePolicy::fixed;
  double gamma = 0.1;
  double power = 0.75;
  std::uint64_t step = 100000;  ///< iterations
  double momentum = 0.9;
  double weight_decay = 5e-4;

  /// Throws usage for values that cannot train: negative, not finite, momentum of 1 or more.
  void validate() const;
};

double learning_rate(const SolverOptions& options, std::uint64_t iteration);

class Solver {
 public:
  Solver(const SolverOptions& options, std::size_t parameters);

  /// Applies `gradients` to `parameters`; both have the length given at construction.
  void update(std::span<float> parameters, std::span<const float> gradients,
              std::uint64_t iteration);

  /// v: together with the parameters the whole state of the solver.
  std::span<float> momentum() { return momentum_; }
  const SolverOptions& options() const { return options_; }

 private:
  SolverOptions options_;
  std::vector<float> momentum_;
};

}  // namespace forebay
