#include "order/unit_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

}  // namespace forebay
