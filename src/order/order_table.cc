#include "order/order_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>

#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Rows stay where they are. In the order of OrderName.
struct Table {
  std::mutex mutex;
  std::deque<OrderRow> rows{
      {.name = "strided"}, grouped_order(), shuffled_order(), in_memory_order(), listed_order()};
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

const OrderRow& order_row(OrderName order) {
  const std::lock_guard lock(table().mutex);
  return table().rows.at(static_cast<std::size_t>(order));
}

std::optional<OrderName> find_order(std::string_view name) {
  const std::lock_guard lock(table().mutex);
  const auto& rows = table().rows;
  const auto found = std::ranges::find(rows, name, &OrderRow::name);
  if (found == rows.end()) return std::nullopt;
  return static_cast<OrderName>(found - rows.begin());
}

OrderName parse_order(std::string_view option, std::string_view name) {
  std::string known(name);
  std::ranges::replace(known, '-', '_');
  if (const auto order = find_order(known)) return *order;
  throw Error(ErrorKind::usage, fmt::format("'{}' is no value of option {}", name, option),
              fmt::format("choose one of: strided, {}", fmt::join(epoch_order_names(), ", ")));
}

std::vector<std::string> epoch_order_names() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::string> names;
  for (const OrderRow& row : table().rows) {
    if (row.list) names.push_back(row.name);
  }
  return names;
}

OrderName add_order(OrderRow row) {
  const bool known = find_order(row.name).has_value();
  const std::lock_guard lock(table().mutex);
  auto& rows = table().rows;
  if (known || row.name.empty() || !row.list ||
      rows.size() > std::numeric_limits<std::underlying_type_t<OrderName>>::max()) {
    throw Error(ErrorKind::usage, fmt::format("an order '{}' cannot be added", row.name),
                "give it a name that no other has, and a list");
  }
  rows.push_back(std::move(row));
  return static_cast<OrderName>(rows.size() - 1);
}

std::string_view to_string(OrderName order) { return order_row(order).name; }

std::unique_ptr<const EpochList> make_epoch_list(const OrderOptions& options, std::uint64_t epoch) {
  return order_row(options.order).list(options, epoch);
}

}  // namespace forebay
