#include "order/draw_windows.hpp"

#include <algorithm>

#include "order/order_cost.hpp"
#include "order/order_table.hpp"

namespace forebay {
namespace {

std::uint64_t ceiling(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

}  // namespace

// Units are of samples, of which a rank takes fewer or more at an iteration; else what is loaded
// together are the batches of a window.
DrawWindows::DrawWindows(const OrderOptions& order, bool resumed)
    : share_(1), aligned_(loads_as_drawn(order)) {
  const auto ranks = static_cast<std::uint64_t>(order.ranks);
  const std::uint64_t one = forebay::most_loaded(order, resumed);
  draws_ = order.window * order.reuse;
  if (order_row(order.order).rounds) {
    share_ = order.batch / ranks;
    draws_ = std::max(one * order.reuse, share_);
  }
  // Before the last buffer of a window begins, the others have served. Only a part does each unit
  // that a run is resumed in, and the first one of which `wrap` takes samples again.
  const bool repeats = order.end == OrderEnd::pad || order.end == OrderEnd::wrap;
  const std::uint64_t whole = 1 + (resumed ? 1U : 0U) + (repeats ? 1U : 0U);
  const std::uint64_t iterations = ceiling(draws_, share_) + 1;
  most_loaded_ = aligned_ ? one : whole * one + iterations * ceiling(order.batch, ranks);
}

std::uint64_t DrawWindows::at(std::uint64_t iteration) const {
  return ((iteration + 1) * share_ - 1) / draws_;  // floor(w * L) <= i as long as w * L < i + 1
}

std::uint64_t DrawWindows::begin(std::uint64_t window) const { return window * draws_ / share_; }

}  // namespace forebay
