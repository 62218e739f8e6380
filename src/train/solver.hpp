// How gradients change the parameters: plain loops over flat arrays, the same numbers on every
// rank, in every run. Local.
//
//   sgd    stochastic gradient descent with momentum and weight decay, in Caffe's form:
//            v <- momentum * v + rate * (g + weight_decay * w)
//            w <- w - v
//   adam   Kingma and Ba, "Adam: a method for stochastic optimization" (ICLR 2015), algorithm 1,
//          with g + weight_decay * w for g; t counts from 1:
//            m <- momentum * m + (1 - momentum) * g
//            v <- squares * v + (1 - squares) * g^2
//            w <- w - rate * (m / (1 - momentum^t)) / (sqrt(v / (1 - squares^t)) + epsilon)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace forebay {

enum class SolverKind : std::uint8_t { sgd, adam };

std::string_view to_string(SolverKind kind);
/// Throws usage, listing the names there are.
SolverKind parse_solver_kind(std::string_view text);

/// How the learning rate changes with the iteration i (Caffe's names and formulas) or the epoch.
enum class RatePolicy : std::uint8_t {
  fixed,   ///< rate
  step,    ///< rate * gamma ^ floor(i / step)
  inv,     ///< rate * (1 + gamma * i) ^ -power
  epochs,  ///< rate * gamma ^ (how many of `drops` have passed)
};

std::string_view to_string(RatePolicy policy);
/// Throws usage, listing the names there are.
RatePolicy parse_rate_policy(std::string_view text);

struct SolverOptions {
  SolverKind kind = SolverKind::sgd;
  double rate = 0.01;
  RatePolicy policy = RatePolicy::fixed;
  double gamma = 0.1;
  double power = 0.75;
  std::uint64_t step = 100000;       ///< iterations
  std::vector<std::uint64_t> drops;  ///< epochs after which the rate falls, ascending
  double momentum = 0.9;
  double weight_decay = 5e-4;
  double squares = 0.999;  ///< of adam: decay of the mean squares
  double epsilon = 1e-8;   ///< of adam

  /// Throws usage for values that cannot train: negative, not finite, momentum of 1 or more.
  void validate() const;
};

/// How far a run is, both counted over its resumed parts.
struct RunTime {
  std::uint64_t iteration = 0;  ///< iterations done
  std::uint64_t epoch = 0;      ///< epochs done
  double rate_factor = 1;       ///< multiplies the learning rate: of batches that have grown
};

double learning_rate(const SolverOptions& options, RunTime now);

class Solver {
 public:
  Solver(const SolverOptions& options, std::size_t parameters);

  /// Applies `gradients` to `parameters`; both have the length given at construction.
  void update(std::span<float> parameters, std::span<const float> gradients, RunTime now);

  /// The same for the parameters from `first` on, as many as are given. Parts that do not overlap
  /// may be updated by different threads.
  void update_part(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                   RunTime now);

  /// v of sgd; m, then v of adam: together with the parameters and the time the whole state of the
  /// solver.
  std::span<float> state() { return state_; }
  const SolverOptions& options() const { return options_; }

 private:
  void update_by_momentum(std::size_t first, std::span<float> parameters,
                          std::span<const float> gradients, RunTime now);
  void update_by_adam(std::size_t first, std::span<float> parameters,
                      std::span<const float> gradients, RunTime now);

  SolverOptions options_;
  std::size_t parameters_;
  std::vector<float> state_;
};

}  // namespace forebay
