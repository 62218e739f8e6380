#include "train/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::string_view kPolicyNames[] = {"fixed", "step", "inv"};

void require(bool holds, std::string_view option, double value, std::string_view allowed) {
  if (holds) return;
  throw Error(ErrorKind::usage, fmt::format("{} is {}", option, value),
              fmt::format("give {}", allowed));
}

bool positive(double value) { return std::isfinite(value) && value > 0; }
bool not_negative(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

std::string_view to_string(RatePolicy policy) {
  return kPolicyNames[static_cast<std::size_t>(policy)];
}

RatePolicy parse_rate_policy(std::string_view text) {
  const auto* found = std::ranges::find(kPolicyNames, text);
  if (found == std::end(kPolicyNames)) {
    throw Error(ErrorKind::usage, fmt::format("there is no learning rate policy '{}'", text),
                "choose fixed, step or inv");
  }
  return static_cast<RatePolicy>(std::distance(std::begin(kPolicyNames), found));
}

void SolverOptions::validate() const {
  require(positive(rate), "the learning rate", rate, "a number above 0");
  require(not_negative(gamma), "gamma", gamma, "0 or a number above");
  require(not_negative(power), "power", power, "0 or a number above");
  require(step > 0, "the step of the learning rate", 0, "at least 1 iteration");
  require(not_negative(momentum) && momentum < 1, "momentum", momentum, "at least 0 and below 1");
  require(not_negative(weight_decay), "weight decay", weight_decay, "0 or a number above");
}

double learning_rate(const SolverOptions& options, std::uint64_t iteration) {
  switch (options.policy) {
    case RatePolicy::fixed:
      return options.rate;
    case RatePolicy::step: {
      const std::uint64_t steps = iteration / options.step;
      return options.rate * std::pow(options.gamma, static_cast<double>(steps));
    }
    case RatePolicy::inv:
      return options.rate *
             std::pow(1 + options.gamma * static_cast<double>(iteration), -options.power);
  }
  return options.rate;
}

Solver::Solver(const SolverOptions& options, std::size_t parameters)
    : options_(options), momentum_(parameters, 0.0F) {
  options.validate();
}

void Solver::update(std::span<float> parameters, std::span<const float> gradients,
                    std::uint64_t iteration) {
  const auto rate = static_cast<float>(learning_rate(options_, iteration));
  const auto keep = static_cast<float>(options_.momentum);
  const auto decay = static_cast<float>(options_.weight_decay);
  for (std::size_t i = 0; i < momentum_.size(); ++i) {
    momentum_[i] = keep * momentum_[i] + rate * (gradients[i] + decay * parameters[i]);
    parameters[i] -= momentum_[i];
  }
}

}  // namespace forebay
