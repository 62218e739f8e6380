#include "order/round_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {
namespace {

// Enough units a round to share them evenly, and to mix rounds well.
constexpr std::uint64_t kUnitsARound = 256;
constexpr std::uint64_t kMostTried = 4096;

/// A divisor of N_mem, so that rounds are full, if there is one not far below N_mem / 256.
std::uint64_t default_group(std::uint64_t in_memory) {
  const std::uint64_t wanted = std::max<std::uint64_t>(in_memory / kUnitsARound, 1);
  const std::uint64_t least = std::max(wanted / 2, wanted - std::min(wanted - 1, kMostTried));
  for (std::uint64_t size = wanted; size > least; --size) {
    if (in_memory % size == 0) return size;
  }
  return wanted;
}

/// How many units fit, whichever they are.
std::uint64_t units_that_fit(const UnitCut& cut, std::uint64_t in_memory) {
  if (cut.even()) return std::min(in_memory / cut.size(), cut.units());
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t unit = 0; unit < cut.units(); ++unit) {
    sizes.push_back(cut.samples(unit).count);
  }
  std::ranges::sort(sizes, std::greater<>{});
  std::uint64_t units = 0, samples = 0;
  while (units < sizes.size() && samples + sizes[units] <= in_memory) samples += sizes[units++];
  return units;
}

}  // namespace

std::uint64_t samples_in_memory(const OrderOptions& options) {
  if (options.ratio == 1) return options.entries;
  return static_cast<std::uint64_t>(options.ratio * static_cast<double>(options.entries));
}

RoundPlan plan_rounds(const OrderOptions& options) {
  const std::uint64_t in_memory = samples_in_memory(options);
  const std::uint64_t group = options.group > 0 ? options.group : default_group(in_memory);
  UnitCut cut(options.entries, group, options.bounds);
  const std::uint64_t units = options.ratio == 1 ? cut.units() : units_that_fit(cut, in_memory);
  if (units > 0) return {cut, units};
  throw Error(ErrorKind::usage,
              fmt::format("a memory ratio of {} holds {} of {} samples, less than one unit",
                          options.ratio, in_memory, options.entries),
              "raise the ratio, or make units smaller with --group");
}

}  // namespace forebay
