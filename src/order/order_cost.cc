#include "order/order_cost.hpp"

#include <algorithm>
#include <cmath>

#include "order/order_table.hpp"

namespace forebay {
namespace {

class Counter {
 public:
  explicit Counter(const EpochOrder& order) : order_(order) {
    const OrderOptions& options = order.options();
    ranks_per_node_ = options.ranks_per_node > 0 ? options.ranks_per_node : options.ranks;
  }

  OrderCost count() {
    for (int rank = 0; rank < order_.options().ranks; ++rank) {
      std::uint64_t before = 0;
      for (auto buffer = order_.first_buffer(rank, 0); buffer;
           buffer = order_.next_buffer(rank, *buffer)) {
        const std::uint64_t loaded = add_loads(*buffer);
        cost_.samples_held = std::max(cost_.samples_held, before + loaded);
        before = loaded;
        if (buffer->shared) add_draws(rank, *buffer);
      }
      cost_.deliveries += order_.draws(rank);
    }
    return cost_;
  }

 private:
  std::uint64_t add_loads(const Buffer& buffer) {
    std::uint64_t samples = 0;
    for (const Run& run : buffer.loads) samples += run.count;
    cost_.requests += buffer.loads.size();
    cost_.samples_read += samples;
    return samples;
  }

  void add_draws(int rank, const Buffer& buffer) {
    for (std::uint64_t draw = buffer.first; draw < buffer.first + buffer.count; ++draw) {
      const int holder = order_.place(rank, draw).rank;
      if (holder == rank) continue;
      ++cost_.samples_exchanged;
      if (holder / ranks_per_node_ != rank / ranks_per_node_) ++cost_.between_nodes;
    }
  }

  const EpochOrder& order_;
  int ranks_per_node_ = 1;
  OrderCost cost_;
};

/// One request a unit, or as many neighbours as stay together; the worst case is one a sample.
std::uint64_t expected_requests(const OrderOptions& options, std::uint64_t samples) {
  const OrderRow& row = order_row(options.order);
  if (row.rounds) return row.rounds(options).cut.units();
  return row.kept ? kept_together(options).units() : samples;
}

std::uint64_t expected_held(const EpochOrder& order) {
  const OrderOptions& options = order.options();
  const OrderRow& row = order_row(options.order);
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  if (row.exchanges) {
    return (order.resident() ? 1 : 2) * (samples_in_memory(options) + ranks - 1) / ranks;
  }
  if (row.rounds) return 2 * row.rounds(options).cut.samples(0).count;
  return 2 * options.window * ((options.batch + ranks - 1) / ranks);
}

/// The part of the deliveries that comes from `away` of the `ranks` that share a buffer.
std::uint64_t expected_from(const OrderOptions& options, std::uint64_t deliveries, int away,
                            int ranks) {
  const bool first_pass = order_row(options.order).exchanges;
  const double passes = static_cast<double>(options.reuse - (first_pass ? 0 : 1)) /
                        static_cast<double>(options.reuse);
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(deliveries) * passes * away / std::max(ranks, 1)));
}

OrderCost expected(const EpochOrder& order) {
  const OrderOptions& options = order.options();
  const int on_node =
      options.ranks_per_node > 0 ? std::min(options.ranks_per_node, options.ranks) : options.ranks;
  const bool node = options.reuse_scope == ReuseScope::node;
  const bool alone =
      !order_row(options.order).exchanges && options.reuse_scope == ReuseScope::process;
  const int together = alone ? 1 : node ? on_node : options.ranks;
  const std::uint64_t samples = order.size() / options.reuse;
  OrderCost cost{.counted = false};
  cost.requests = expected_requests(options, samples);
  cost.samples_read = samples;
  cost.samples_held = expected_held(order);
  cost.deliveries = order.size() + order.repeated() - order.dropped();
  cost.samples_exchanged = expected_from(options, cost.deliveries, together - 1, together);
  cost.between_nodes =
      expected_from(options, cost.deliveries, together - std::min(together, on_node), together);
  return cost;
}

/// Of the units of one round that one of `ranks` ranks loads.
std::uint64_t most_of_round(const RoundPlan& plan, std::uint64_t ranks) {
  std::uint64_t largest = 0;
  for (std::uint64_t unit = 0; unit < (plan.cut.even() ? 1 : plan.cut.units()); ++unit) {
    largest = std::max(largest, plan.cut.samples(unit).count);
  }
  return (plan.units_a_round + ranks - 1) / ranks * largest;
}

}  // namespace

double expected_reuse_distance(const OrderOptions& options) {
  if (options.reuse == 1) return 0;
  const OrderRow& row = order_row(options.order);
  std::uint64_t together = options.window * options.batch;
  if (row.rounds) {
    const RoundPlan plan = row.rounds(options);
    together = plan.units_a_round * plan.cut.samples(0).count;
  }
  return static_cast<double>(std::min(together, row.samples(options)));
}

OrderCost cost_of(const EpochOrder& order) {
  return order.size() <= kMostCounted ? Counter(order).count() : expected(order);
}

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
