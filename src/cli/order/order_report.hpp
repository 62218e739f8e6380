// What `forebay order` says about an order: figures of one epoch, as text or JSON, and the order
// itself.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "forebay/epoch_order.hpp"
#include "forebay/randomization.hpp"
#include "order/order_cost.hpp"

namespace forebay {

struct OrderReport {
  explicit OrderReport(const EpochOrder& order);

  EpochOrder order;
  std::optional<double> level;  ///< RL
  std::optional<std::uint64_t> subsets;
  std::optional<double> epochs_limit;
  std::optional<MeasuredOrder> measured;  ///< where the epoch is short enough
  OrderCost cost;
  std::optional<double> sample_bytes;  ///< mean, where known
  std::uint64_t epochs = 0;            ///< that training will take; 0 = not said
  bool list = false;
};

nlohmann::ordered_json to_json(const OrderReport& report);
void print_report(const OrderReport& report);

}  // namespace forebay
