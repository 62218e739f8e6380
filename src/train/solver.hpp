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
#include <optional>
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

// Batches that grow as training converges (paper 002, 8.4.3).
//
// After each test the gain of accuracy since the test before it, per iteration, is compared with a
// threshold. Where it is smaller, parameters need not be updated as often: the global batch
// doubles, and with it the learning rate, which climbs over some iterations from the old one.
//
//   batch          B      B      2B     2B     4B
//   test            0.80   0.85   0.86   0.88   0.881
//   learning rate  r      r      r -> 2r       2r -> 4r
//
// Or as samples are used again (8.4.3, by the percentage of reused data): with a data set that is
// delivered k times before other samples are read (reuse), the batch doubles with each pass in
// which enough of what was delivered of a filling is reused, p of p + 1 in pass p, and falls back
// when the memory is filled anew: a saw-tooth.
//
//   pass           0  0  0  0 | 1    1  | 2     | 0  0  0  0 | 1 ...         k = 3
//   batch          B  B  B  B | 2B   2B | 4B    | B  B  B  B | 2B
//
// The batch of the data set stays as it is: an iteration takes several of them, and fewer where a
// pass ends. Pure functions.

struct GrowthOptions {
  std::optional<double> threshold;  ///< gain of accuracy per iteration; empty: tests grow nothing
  std::optional<double> reused;     ///< reused part from which a pass doubles; empty: none does
  std::uint64_t limit = 16;         ///< times the first batch; a power of two, or rounded down
  std::uint64_t warmup = 100;       ///< iterations until the learning rate has doubled

  /// Throws usage for values that mean nothing.
  void validate() const;
};

/// What a run knows of it; part of its checkpoints.
struct GrowthState {
  std::uint64_t factor = 1;        ///< of batch and learning rate
  std::uint64_t grown_at = 0;      ///< iterations done when it grew last,
  std::uint64_t tested_at = 0;     ///< and at the last test; 0: there was none
  std::optional<double> accuracy;  ///< of that
  bool operator==(const GrowthState&) const = default;
};

/// Takes the result of a test; whether the batch has grown.
bool take_test(GrowthState& state, const GrowthOptions& options, double accuracy,
               std::uint64_t iteration);

/// How many times the first batch an iteration of pass `pass` takes, where passes double it.
std::uint64_t sawtooth_factor(const GrowthOptions& options, std::uint64_t pass);
/// Before an iteration of pass `pass`; whether the factor has changed.
bool take_pass(GrowthState& state, const GrowthOptions& options, std::uint64_t pass,
               std::uint64_t iteration);

/// What the learning rate is multiplied by, after so many iterations.
double rate_factor(const GrowthState& state, const GrowthOptions& options, std::uint64_t iteration);
/// The same for an iteration that has taken only a part of its batch: that part of it, but not less
/// than the first batch has.
double rate_factor(const GrowthState& state, const GrowthOptions& options, std::uint64_t iteration,
                   double part);

}  // namespace forebay
