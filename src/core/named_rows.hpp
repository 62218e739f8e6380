// A table that the process adds to: rows under names, numbered as they came.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "forebay/error.hpp"

namespace forebay {

/// `Row` has a `name`; `Number` is an enumeration. Thread-safe; rows stay where they are.
template <typename Row, typename Number>
class NamedRows {
 public:
  explicit NamedRows(std::deque<Row> rows) : rows_(std::move(rows)) {}

  /// Of a number that find() or add() gave, or of the enumeration's own.
  const Row& at(Number number) const {
    const std::lock_guard lock(mutex_);
    return rows_.at(static_cast<std::size_t>(number));
  }

  std::optional<Number> find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return found(name);
  }

  /// Of those that `wanted` takes, in their order.
  template <typename Wanted>
  std::vector<std::string> names(Wanted wanted) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const Row& row : rows_) {
      if (wanted(row)) names.push_back(row.name);
    }
    return names;
  }

  /// Throws usage for a name that exists.
  Number add(Row row) {
    const std::lock_guard lock(mutex_);
    constexpr std::size_t kMost = std::numeric_limits<std::underlying_type_t<Number>>::max();
    if (row.name.empty() || found(row.name) || rows_.size() > kMost) {
      throw Error(ErrorKind::usage, fmt::format("'{}' cannot be added", row.name),
                  "give it a name that no other has");
    }
    rows_.push_back(std::move(row));
    return static_cast<Number>(rows_.size() - 1);
  }

 private:
  std::optional<Number> found(std::string_view name) const {
    const auto row = std::ranges::find(rows_, name, &Row::name);
    if (row == rows_.end()) return std::nullopt;
    return static_cast<Number>(row - rows_.begin());
  }

  mutable std::mutex mutex_;
  std::deque<Row> rows_;
};

}  // namespace forebay
