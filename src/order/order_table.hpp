// The orders, a row each: what every part of Forebay knows of them.
//
// An order is a file in this folder and a row in order_table.cc: an EpochList, which says what is
// where in an epoch, and what OrderOptions have to do with it. `strided`, whose positions know no
// epochs (forebay/order.hpp), is a row without a list. OrderName is the number of a row.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "order/epoch_list.hpp"
#include "order/unit_order.hpp"

namespace forebay {

struct OrderRow {
  std::string name;
  /// The samples are those of OrderOptions::ids.
  bool takes_ids = false;
  /// Ranks load a round of units together, and any of them draws from it. Otherwise a unit, too, is
  /// of one rank.
  bool exchanges = false;

  /// The list of `epoch`. Options are valid, here and below, and as those who begin it have them.
  std::function<std::unique_ptr<const EpochList>(const OrderOptions&, std::uint64_t)> list;
  /// Throws usage for what is wrong with its own options; those of all orders are checked before.
  std::function<void(const OrderOptions&)> validate = [](const OrderOptions&) {};
  /// What shapes it beside seed and end, for OrderOptions::identity(): ",name=value".
  std::function<std::string(const OrderOptions&)> parameters = [](const OrderOptions&) {
    return std::string();
  };
  /// How it is cut into units that are loaded as a whole, and how many are mixed with each other.
  /// Empty: what is loaded together are the batches of a window, sample by sample.
  std::function<RoundPlan(const OrderOptions&)> rounds;
  /// Neighbours of the data set that stay together, 0 for all, where everything else is mixed.
  std::function<std::uint64_t(const OrderOptions&)> kept;

  /// Samples of an epoch, without reuse.
  std::uint64_t samples(const OrderOptions& options) const {
    return takes_ids ? options.ids->size() : options.entries;
  }
};

/// Of an order that exists. Thread-safe, as is what follows.
const OrderRow& order_row(OrderName order);
/// Nothing where no order has that name.
std::optional<OrderName> find_order(std::string_view name);
/// The same, or usage that names the `option`, and all that there are.
OrderName parse_order(std::string_view option, std::string_view name);
/// All that are new in every epoch.
std::vector<std::string> epoch_order_names();
/// Adds one to this process; a name that exists is usage.
OrderName add_order(OrderRow row);

// The rows of the orders that Forebay has.
OrderRow grouped_order();
OrderRow shuffled_order();
OrderRow in_memory_order();
OrderRow listed_order();

}  // namespace forebay
