#include "train/batch_growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "forebay/error.hpp"

namespace forebay {

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
