#include "order/most_loaded.hpp"

#include <algorithm>

#include "order/round_plan.hpp"

namespace forebay {
namespace {

std::uint64_t largest_group(const OrderOptions& order) {
  std::uint64_t largest = order.group;
  for (std::size_t i = 1; order.bounds && i < order.bounds->size(); ++i) {
    largest = std::max(largest, (*order.bounds)[i] - (*order.bounds)[i - 1]);
  }
  return largest;
}

/// Of the units of one round that one of `ranks` ranks loads.
std::uint64_t most_of_round(const OrderOptions& order, std::uint64_t ranks) {
  const RoundPlan plan = plan_rounds(order);
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
  const std::uint64_t size = order.ids ? order.ids->size() : order.entries;
  // Loaded one by one: batches of a window, repeats at the end among them.
  const std::uint64_t singles = std::min(share * order.window, size * order.reuse + share);
  const bool repeats = order.end == OrderEnd::pad || order.end == OrderEnd::wrap;
  const bool only_whole = !repeats && !resumed;
  if (order.order == OrderName::grouped) {
    return only_whole ? largest_group(order) : std::max(singles, largest_group(order));
  }
  if (order.order == OrderName::in_memory) {
    const std::uint64_t most = most_of_round(order, ranks);
    return only_whole ? most : std::max(singles, most);
  }
  return singles;
}

bool is_scattered(const OrderOptions& order) {
  constexpr std::uint64_t kMostKept = 16;
  const bool apart = order.keep > 0 && order.keep <= kMostKept;
  return order.order == OrderName::listed || (order.order == OrderName::shuffled && apart);
}

bool loads_as_drawn(const OrderOptions& order) {
  return order.reuse == 1 &&
         (order.order == OrderName::shuffled || order.order == OrderName::listed);
}

}  // namespace forebay
