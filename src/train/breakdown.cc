#include "train/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace forebay {
namespace {

constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "read", "skew", "decode", "forward", "backward", "parameter sync", "update", "test", "other"};

constexpr std::size_t kLargestTable = 8;

std::string line(std::string_view name, const std::vector<double>& values, double total) {
  std::string text = fmt::format("{:<15}", name);
  if (values.size() <= kLargestTable) {
    for (const double value : values) text += fmt::format("{:>9.2f}", value);
  } else {
    const auto [least, most] = std::ranges::minmax(values);
    text += fmt::format("{:>9.2f}{:>9.2f}", least, most);
  }
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double share = total > 0 ? 100 * sum / total : 0;
  return text + fmt::format("{:>9.2f}{:>7.1f}%\n", sum / static_cast<double>(values.size()), share);
}

std::string heading(std::size_t ranks) {
  std::string text = fmt::format("{:<15}", "seconds");
  if (ranks <= kLargestTable) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      text += fmt::format("{:>9}", fmt::format("rank {}", rank));
    }
  } else {
    text += fmt::format("{:>9}{:>9}", "least", "most");
  }
  return text + fmt::format("{:>9}{:>8}\n", "mean", "share");
}

}  // namespace

std::string_view to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

void Breakdown::close(double wall_seconds) {
  total = wall_seconds;
  (*this)[Phase::other] = 0;
  const double known = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  (*this)[Phase::other] = std::max(0.0, total - known);
}

double images_per_second(std::span<const Breakdown> ranks) {
  double images = 0;
  double slowest = 0;
  for (const Breakdown& rank : ranks) {
    images += static_cast<double>(rank.images);
    slowest = std::max(slowest, rank.total - rank[Phase::test]);
  }
  return slowest > 0 ? images / slowest : 0;
}

std::string to_table(std::span<const Breakdown> ranks) {
  std::string text = heading(ranks.size());
  std::vector<double> values(ranks.size());
  std::ranges::transform(ranks, values.begin(), &Breakdown::total);
  const std::vector<double> totals = values;
  const double total = std::accumulate(totals.begin(), totals.end(), 0.0);
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    std::ranges::transform(ranks, values.begin(),
                           [phase](const Breakdown& rank) { return rank.seconds[phase]; });
    text += line(kPhaseNames[phase], values, total);
  }
  text += line("total", totals, total);
  return text + fmt::format("{:.0f} images/s (test aside)\n", images_per_second(ranks));
}

}  // namespace forebay
