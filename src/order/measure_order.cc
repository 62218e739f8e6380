#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/randomization.hpp"

namespace forebay {
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
