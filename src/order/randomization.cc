#include "forebay/randomization.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "forebay/error.hpp"
#include "order/order_table.hpp"
#include "order/smooth_sum.hpp"

namespace forebay {
namespace {

/// 1 + 1/2 + ... + 1/n
double harmonic(double n) {
  if (n < 1) return 0;
  if (n < 64) {
    double sum = 0;
    for (double i = 1; i <= n; ++i) sum += 1 / i;
    return sum;
  }
  constexpr double kEuler = 0.5772156649015329;
  return std::log(n) + kEuler + 1 / (2 * n) - 1 / (12 * n * n);
}

/// H of a full shuffle of n samples.
double full_entropy(std::uint64_t samples) {
  return smooth_sum(1, samples, [](double left) { return std::log2(left) / left; });
}

/// H where k neighbours stay together: while (j - 1) * k < left <= j * k, one of j is drawn.
double kept_entropy(std::uint64_t samples, std::uint64_t keep) {
  const auto k = static_cast<double>(keep);
  const std::uint64_t full = samples / keep;
  double sum = smooth_sum(
      1, full, [&](double j) { return std::log2(j) * (harmonic(j * k) - harmonic((j - 1) * k)); });
  if (samples % keep > 0) {
    sum += std::log2(static_cast<double>(full + 1)) *
           (harmonic(static_cast<double>(samples)) - harmonic(static_cast<double>(full) * k));
  }
  return sum;
}

/// Rounds of `in_memory` samples, each of `units_a_round` of `units` units.
struct Rounds {
  double samples;
  double in_memory;
  double units;
  double units_a_round;
};

/// The part of H that is of round `r`, which has `size` samples.
double round_entropy(const Rounds& rounds, double r, std::uint64_t size) {
  const double before = r * rounds.in_memory;
  const double behind = rounds.samples - before - static_cast<double>(size);
  const double left = (rounds.units - r * rounds.units_a_round) / rounds.units_a_round;
  const double choice =
      std::log2(std::max(left, 1.0)) * (harmonic(rounds.samples - before) - harmonic(behind));
  return choice + smooth_sum(1, size, [&](double in_round) {
           return std::log2(in_round) / (in_round + behind);
         });
}

double rounds_entropy(std::uint64_t samples, std::uint64_t in_memory, std::uint64_t units,
                      std::uint64_t units_a_round) {
  const Rounds rounds{static_cast<double>(samples), static_cast<double>(in_memory),
                      static_cast<double>(units), static_cast<double>(units_a_round)};
  const std::uint64_t last = (samples - 1) / in_memory;
  double sum = round_entropy(rounds, static_cast<double>(last), samples - last * in_memory);
  if (last > 0) {
    sum += smooth_sum(0, last - 1, [&](double r) { return round_entropy(rounds, r, in_memory); });
  }
  return sum;
}

/// Samples of `units` of the units, on average.
std::uint64_t samples_in(const UnitCut& cut, std::uint64_t units, std::uint64_t samples) {
  if (units >= cut.units()) return samples;
  if (cut.even()) return units * cut.size();
  return std::max<std::uint64_t>(samples / cut.units() * units, 1);
}

/// Nothing where what is mixed is not known.
std::optional<double> entropy(const OrderOptions& options) {
  const OrderRow& row = order_row(options.order);
  if (row.rounds) {
    const RoundPlan plan = row.rounds(options);
    return rounds_entropy(options.entries,
                          samples_in(plan.cut, plan.units_a_round, options.entries),
                          plan.cut.units(), plan.units_a_round);
  }
  if (!row.kept) return std::nullopt;
  return kept_entropy(options.entries, kept_together(options).size());
}

}  // namespace

std::optional<double> randomization_level(const OrderOptions& options) {
  const auto known = entropy(options);
  if (!known) return std::nullopt;
  return options.entries == 1 ? 1 : *known / full_entropy(options.entries);
}

std::optional<std::uint64_t> subsets(const OrderOptions& options) {
  const OrderRow& row = order_row(options.order);
  if (row.rounds) {
    const RoundPlan plan = row.rounds(options);
    return row.exchanges ? plan.rounds() : plan.cut.units();
  }
  return row.kept ? std::optional<std::uint64_t>(1) : std::nullopt;
}

std::optional<double> epochs_limit(const OrderOptions& options) {
  const auto parts = subsets(options);
  if (!parts) return std::nullopt;
  return static_cast<double>(options.entries) / static_cast<double>(*parts);
}

// What an order does, counted instead of expected.

namespace {

constexpr std::uint64_t kNowhere = UINT64_MAX;

/// Samples as global batches bring them, without what fills up the end.
std::vector<std::uint64_t> deliveries_of(const EpochOrder& order) {
  std::vector<std::uint64_t> samples;
  samples.reserve(order.size());
  for (std::uint64_t iteration = 0; iteration < order.steps(); ++iteration) {
    for (int rank = 0; rank < order.options().ranks; ++rank) {
      const Share share = order.share(rank, iteration);
      for (std::uint64_t i = 0; i < share.valid; ++i) {
        samples.push_back(order.draw(rank, share.first + i).sample);
      }
    }
  }
  return samples;
}

/// Takes all deliveries of a sample but the first out, and measures how far each is from the one
/// before.
class ReuseDistance {
 public:
  explicit ReuseDistance(std::uint64_t entries) : last_(entries, kNowhere) {}

  std::vector<std::uint64_t> first_ones(const std::vector<std::uint64_t>& deliveries) {
    std::vector<std::uint64_t> first;
    for (std::uint64_t at = 0; at < deliveries.size(); ++at) {
      std::uint64_t& last = last_[deliveries[at]];
      if (last == kNowhere) {
        first.push_back(deliveries[at]);
      } else {
        sum_ += static_cast<double>(at - last);
        least_ = count_ == 0 ? at - last : std::min(least_, at - last);
        ++count_;
      }
      last = at;
    }
    return first;
  }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  std::uint64_t least() const { return least_; }

 private:
  std::vector<std::uint64_t> last_;
  double sum_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t least_ = 0;
};

double correlation_of(const std::vector<std::uint64_t>& samples) {
  const auto n = static_cast<double>(samples.size());
  double mean = 0;
  for (const std::uint64_t sample : samples) mean += static_cast<double>(sample) / n;
  double both = 0, places = 0, ids = 0;
  for (std::size_t place = 0; place < samples.size(); ++place) {
    const double one = static_cast<double>(place) - (n - 1) / 2;
    const double other = static_cast<double>(samples[place]) - mean;
    both += one * other;
    places += one * one;
    ids += other * other;
  }
  return places > 0 && ids > 0 ? both / std::sqrt(places * ids) : 0;
}

void measure_neighbours(const std::vector<std::uint64_t>& samples, std::uint64_t entries,
                        MeasuredOrder& measured) {
  std::vector<std::uint64_t> places(entries, kNowhere);
  for (std::uint64_t place = 0; place < samples.size(); ++place) places[samples[place]] = place;
  std::uint64_t pairs = 0, kept = 0;
  double distance = 0;
  for (std::uint64_t sample = 0; sample + 1 < entries; ++sample) {
    const std::uint64_t one = places[sample], next = places[sample + 1];
    if (one == kNowhere || next == kNowhere) continue;
    ++pairs;
    kept += next == one + 1 ? 1 : 0;
    distance += static_cast<double>(std::max(one, next) - std::min(one, next));
  }
  if (pairs == 0) return;
  const auto count = static_cast<double>(pairs);
  measured.neighbours_kept = static_cast<double>(kept) / count;
  measured.neighbour_distance = distance / count * 3 / static_cast<double>(samples.size());
}

}  // namespace

MeasuredOrder measure_order(const EpochOrder& order) {
  if (order.size() > kMostMeasured || order.options().entries > kMostMeasured) {
    throw Error(ErrorKind::usage,
                fmt::format("an epoch of {} deliveries is too long to measure", order.size()),
                fmt::format("the limit is {}", kMostMeasured));
  }
  MeasuredOrder measured;
  ReuseDistance reuse(order.options().entries);
  const auto samples = reuse.first_ones(deliveries_of(order));
  measured.reuse_distance = reuse.mean();
  measured.least_reuse_distance = reuse.least();
  measured.correlation = correlation_of(samples);
  measure_neighbours(samples, order.options().entries, measured);
  return measured;
}

}  // namespace forebay
