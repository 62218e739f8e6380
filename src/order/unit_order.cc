#include "order/unit_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "order/order_limits.hpp"

namespace forebay {

UnitCut::UnitCut(std::uint64_t entries, std::uint64_t size, SharedNumbers bounds)
    : entries_(entries),
      size_(size),
      bounds_(std::move(bounds)),
      units_(bounds_ ? bounds_->size() - 1 : (entries - 1) / size + 1) {}

Run UnitCut::samples(std::uint64_t unit) const {
  if (bounds_) return {(*bounds_)[unit], (*bounds_)[unit + 1] - (*bounds_)[unit]};
  const std::uint64_t first = unit * size_;
  return {first, std::min(size_, entries_ - first)};
}

std::string units_text(const OrderOptions& options) {
  return options.bounds ? ",bounds=" + text_of_numbers(options.bounds)
                        : fmt::format(",group={}", options.group);
}

UnitCut kept_together(const OrderOptions& options) {
  return {options.entries, options.keep == 0 ? options.entries : options.keep};
}

UnitOrder::UnitOrder(UnitCut cut, std::optional<Permutation> order)
    : cut_(std::move(cut)), order_(order) {
  const std::uint64_t last = cut_.units() - 1;
  if (cut_.even()) {
    short_slot_ = order_ ? order_->inverse(last) : last;
    lacking_ = cut_.size() - cut_.samples(last).count;
    return;
  }
  auto begins = std::make_shared<std::vector<std::uint64_t>>(1, 0);
  begins->reserve(cut_.units() + 1);
  for (std::uint64_t slot = 0; slot < cut_.units(); ++slot) {
    begins->push_back(begins->back() + samples(slot).count);
  }
  begins_ = std::move(begins);
}

std::uint64_t UnitOrder::begin(std::uint64_t slot) const {
  if (begins_) return (*begins_)[slot];
  return slot * cut_.size() - (slot > short_slot_ ? lacking_ : 0);
}

std::uint64_t UnitOrder::slot_at(std::uint64_t position) const {
  if (begins_) {
    return static_cast<std::uint64_t>(std::ranges::upper_bound(*begins_, position) -
                                      begins_->begin() - 1);
  }
  const bool behind = position >= begin(short_slot_ + 1);
  return (position + (behind ? lacking_ : 0)) / cut_.size();
}

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
