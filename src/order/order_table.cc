#include "order/order_table.hpp"

#include "core/named_rows.hpp"

namespace forebay {
namespace {

/// In the order of OrderName.
NamedRows<OrderRow, OrderName>& table() {
  static NamedRows<OrderRow, OrderName> all(
      {{.name = "strided"}, grouped_order(), shuffled_order(), in_memory_order(), listed_order()});
  return all;
}

}  // namespace

const OrderRow& order_row(OrderName order) { return table().at(order); }

std::optional<OrderName> find_order(std::string_view name) { return table().find(name); }

OrderName parse_order(std::string_view option, std::string_view name) {
  std::string known(name);
  std::ranges::replace(known, '-', '_');
  if (const auto order = find_order(known)) return *order;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option {}", name, option),
              fmt::format("choose one of: strided, {}", fmt::join(epoch_order_names(), ", ")));
}

std::vector<std::string> epoch_order_names() {
  return table().names([](const OrderRow& row) { return row.list != nullptr; });
}

OrderName add_order(OrderRow row) {
  if (!row.list) throw Error(ErrorKind::usage, "an order has no list", "give it one");
  return table().add(std::move(row));
}

std::string_view to_string(OrderName order) { return order_row(order).name; }

std::unique_ptr<const EpochList> make_epoch_list(const OrderOptions& options, std::uint64_t epoch) {
  return order_row(options.order).list(options, epoch);
}

}  // namespace forebay
