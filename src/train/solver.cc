#include "train/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/names.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr Name<SolverKind> kSolvers[] = {{"sgd", SolverKind::sgd}, {"adam", SolverKind::adam}};
constexpr std::string_view kPolicyNames[] = {"fixed", "step", "inv", "epochs"};

void require(bool holds, std::string_view option, double value, std::string_view allowed) {
  if (holds) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}", option, value),
              fmt::format("give {}", allowed));
}

bool positive(double value) { return std::isfinite(value) && value > 0; }
bool not_negative(double value) { return std::isfinite(value) && value >= 0; }

/// As the policy says, for the first batch.
double rate_by_policy(const SolverOptions& options, RunTime now) {
  switch (options.policy) {
    case RatePolicy::fixed:
      return options.rate;
    case RatePolicy::step: {
      const std::uint64_t steps = now.iteration / options.step;
      return options.rate * std::pow(options.gamma, static_cast<double>(steps));
    }
    case RatePolicy::inv:
      return options.rate *
             std::pow(1 + options.gamma * static_cast<double>(now.iteration), -options.power);
    case RatePolicy::epochs: {
      const auto passed = std::ranges::count_if(
          options.drops, [&now](std::uint64_t epoch) { return epoch <= now.epoch; });
      return options.rate * std::pow(options.gamma, static_cast<double>(passed));
    }
  }
  return options.rate;
}

}  // namespace

std::string_view to_string(SolverKind kind) { return name_of(kind, kSolvers); }

SolverKind parse_solver_kind(std::string_view text) { return parse_name("solver", text, kSolvers); }

std::string_view to_string(RatePolicy policy) {
  return kPolicyNames[static_cast<std::size_t>(policy)];
}

RatePolicy parse_rate_policy(std::string_view text) {
  const auto* found = std::ranges::find(kPolicyNames, text);
  if (found == std::end(kPolicyNames)) {
    throw Error(ErrorKind::usage, fmt::format("there is no learning rate policy '{}'", text),
                "choose fixed, step, inv or epochs");
  }
  return static_cast<RatePolicy>(std::distance(std::begin(kPolicyNames), found));
}

void SolverOptions::validate() const {
  require(positive(rate), "the learning rate", rate, "a number above 0");
  require(not_negative(gamma), "gamma", gamma, "0 or a number above");
  require(not_negative(power), "power", power, "0 or a number above");
  require(step > 0, "the step of the learning rate", 0, "at least 1 iteration");
  require(not_negative(momentum) && momentum < 1, "momentum", momentum, "at least 0 and below 1");
  require(not_negative(squares) && squares < 1, "the decay of squares", squares,
          "at least 0 and below 1");
  require(positive(epsilon), "epsilon", epsilon, "a number above 0");
  require(not_negative(weight_decay), "weight decay", weight_decay, "0 or a number above");
  if (policy == RatePolicy::epochs && (drops.empty() || !std::ranges::is_sorted(drops))) {
    throw Error(ErrorKind::usage,
                "the epochs after which the learning rate falls are not ascending",
                "give them as in --lr-epochs 50,75");
  }
}

double learning_rate(const SolverOptions& options, RunTime now) {
  return rate_by_policy(options, now) * now.rate_factor;
}

Solver::Solver(const SolverOptions& options, std::size_t parameters)
    : options_(options),
      parameters_(parameters),
      state_(options.kind == SolverKind::adam ? 2 * parameters : parameters, 0.0F) {
  options.validate();
}

void Solver::update(std::span<float> parameters, std::span<const float> gradients, RunTime now) {
  update_part(0, parameters, gradients, now);
}

void Solver::update_part(std::size_t first, std::span<float> parameters,
                         std::span<const float> gradients, RunTime now) {
  if (options_.kind == SolverKind::adam) return update_by_adam(first, parameters, gradients, now);
  update_by_momentum(first, parameters, gradients, now);
}

void Solver::update_by_momentum(std::size_t first, std::span<float> parameters,
                                std::span<const float> gradients, RunTime now) {
  const std::span<float> speeds = std::span(state_).subspan(first, parameters.size());
  const auto rate = static_cast<float>(learning_rate(options_, now));
  const auto keep = static_cast<float>(options_.momentum);
  const auto decay = static_cast<float>(options_.weight_decay);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    speeds[i] = keep * speeds[i] + rate * (gradients[i] + decay * parameters[i]);
    parameters[i] -= speeds[i];
  }
}

// The corrections are the same for all parameters, so they are worked out once:
// rate * m' / (sqrt(v') + epsilon) = step * m / (sqrt(v) * root + epsilon).
void Solver::update_by_adam(std::size_t first, std::span<float> parameters,
                            std::span<const float> gradients, RunTime now) {
  const auto times = static_cast<double>(now.iteration + 1);
  const double mean_part = 1 - std::pow(options_.momentum, times);
  const double square_part = 1 - std::pow(options_.squares, times);
  const auto step = static_cast<float>(learning_rate(options_, now) / mean_part);
  const auto root = static_cast<float>(1 / std::sqrt(square_part));
  const auto keep = static_cast<float>(options_.momentum);
  const auto keep_squares = static_cast<float>(options_.squares);
  const auto epsilon = static_cast<float>(options_.epsilon);
  const auto decay = static_cast<float>(options_.weight_decay);
  const std::span<float> means = std::span(state_).subspan(first, parameters.size());
  const std::span<float> squares =
      std::span(state_).subspan(parameters_ + first, parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float gradient = gradients[i] + decay * parameters[i];
    means[i] = keep * means[i] + (1 - keep) * gradient;
    squares[i] = keep_squares * squares[i] + (1 - keep_squares) * gradient * gradient;
    parameters[i] -= step * means[i] / (std::sqrt(squares[i]) * root + epsilon);
  }
}

void GrowthOptions::validate() const {
  constexpr std::uint64_t kMost = 1 << 20;
  if (threshold && !std::isfinite(*threshold)) {
    throw Error(ErrorKind::usage, "the gain at which batches grow is no number",
                "give the accuracy that an iteration should gain, such as --grow-batch 1e-5");
  }
  if (reused && !(*reused > 0 && *reused < 1)) {
    throw Error(ErrorKind::usage, fmt::format("{} is no part of reused samples", *reused),
                "give --grow-reused a number between 0 and 1, such as 0.5");
  }
  if (reused && threshold) {
    throw Error(ErrorKind::usage, "batches grow by tests or by reused samples, not both",
                "give --grow-batch or --grow-reused");
  }
  if (limit == 0 || limit > kMost) {
    throw Error(ErrorKind::usage, fmt::format("batches cannot grow {} times", limit),
                fmt::format("give --grow-limit 1 to {}", kMost));
  }
}

bool take_test(GrowthState& state, const GrowthOptions& options, double accuracy,
               std::uint64_t iteration) {
  const std::optional<double> before = state.accuracy;
  const std::uint64_t iterations = iteration - std::min(iteration, state.tested_at);
  state.accuracy = accuracy;
  state.tested_at = iteration;
  if (!options.threshold || !before || iterations == 0) return false;
  const double gain = (accuracy - *before) / static_cast<double>(iterations);
  if (gain >= *options.threshold || state.factor > options.limit / 2) return false;
  state.factor *= 2;
  state.grown_at = iteration;
  return true;
}

std::uint64_t sawtooth_factor(const GrowthOptions& options, std::uint64_t pass) {
  std::uint64_t factor = 1;
  for (std::uint64_t p = 1; p <= pass && factor <= options.limit / 2; ++p) {
    const double reused = static_cast<double>(p) / static_cast<double>(p + 1);
    if (reused >= *options.reused) factor *= 2;
  }
  return factor;
}

bool take_pass(GrowthState& state, const GrowthOptions& options, std::uint64_t pass,
               std::uint64_t iteration) {
  const std::uint64_t factor = options.reused ? sawtooth_factor(options, pass) : state.factor;
  if (factor == state.factor) return false;
  state.factor = factor;
  state.grown_at = iteration;
  return true;
}

double rate_factor(const GrowthState& state, const GrowthOptions& options,
                   std::uint64_t iteration) {
  const auto factor = static_cast<double>(state.factor);
  const std::uint64_t since = iteration - std::min(iteration, state.grown_at);
  if (state.factor == 1 || since >= options.warmup) return factor;
  const double climbed = static_cast<double>(since) / static_cast<double>(options.warmup);
  return factor / 2 * (1 + climbed);
}

double rate_factor(const GrowthState& state, const GrowthOptions& options, std::uint64_t iteration,
                   double part) {
  const double whole = rate_factor(state, options, iteration);
  return part < 1 ? std::max(1.0, whole * part) : whole;
}

}  // namespace forebay
