#include "order/most_loaded.hpp"

#include <algorithm>

#include "order/order_table.hpp"

namespace forebay {
namespace {

/// Of the units of one round that one of `ranks` ranks loads.
std::uint64_t most_of_round(const RoundPlan& plan, std::uint64_t ranks) {
  std::uint64_t largest = 0;
  for (std::uint64_t unit = 0; unit < (plan.cut.even() ? 1 : plan.cut.units()); ++unit) {
    largest = std::max(largest, plan.cut.samples(unit).count);
  }
  return (plan.units_a_round + ranks - 1) / ranks * largest;
}

}  // namespace

std::uint64_t most_loaded(const OrderOptions& order, bool resumed) {
  const auto ranks = static_cast<std::uint64_t>(order.ranks);
  const std::uint64_t share = order.batch / ranks + 1;
  const std::uint64_t size = order_row(order.order).samples(order);
  // Loaded one by one: batches of a window, repeats at the end among them.
  const std::uint64_t singles = std::min(share * order.window, size * order.reuse + share);
  const bool repeats = order.end == OrderEnd::pad || order.end == OrderEnd::wrap;
  const bool only_whole = !repeats && !resumed;
  const OrderRow& row = order_row(order.order);
  if (!row.rounds) return singles;
  const std::uint64_t most = most_of_round(row.rounds(order), ranks);
  return only_whole ? most : std::max(singles, most);
}

bool is_scattered(const OrderOptions& order) {
  constexpr std::uint64_t kMostKept = 16;
  const OrderRow& row = order_row(order.order);
  if (!row.list || row.rounds) return false;
  const std::uint64_t kept = row.kept ? row.kept(order) : 1;
  return kept > 0 && kept <= kMostKept;
}

bool loads_as_drawn(const OrderOptions& order) {
  return order.reuse == 1 && !order_row(order.order).rounds;
}

}  // namespace forebay
