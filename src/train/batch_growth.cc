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

double rate_factor(const GrowthState& state, const GrowthOptions& options,
                   std::uint64_t iteration) {
  const auto factor = static_cast<double>(state.factor);
  const std::uint64_t since = iteration - std::min(iteration, state.grown_at);
  if (state.factor == 1 || since >= options.warmup) return factor;
  const double climbed = static_cast<double>(since) / static_cast<double>(options.warmup);
  return factor / 2 * (1 + climbed);
}

}  // namespace forebay
