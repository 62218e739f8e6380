// A few measurements of one thing, told by their middle and their ends.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace forebay::bench {

/// {"median": ..., "least": ..., "most": ...}; `values` is not empty.
inline nlohmann::ordered_json spread_to_json(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {{"median", median}, {"least", values.front()}, {"most", values.back()}};
}

/// "0.52 (0.47-0.55)"; "-" where there is no such figure.
inline std::string spread_to_text(const nlohmann::ordered_json& row, const char* name,
                                  int decimals) {
  if (!row.contains(name)) return "-";
  const auto& spread = row[name];
  return fmt::format("{0:.{3}f} ({1:.{3}f}-{2:.{3}f})", spread["median"].get<double>(),
                     spread["least"].get<double>(), spread["most"].get<double>(), decimals);
}

inline double median_of(const nlohmann::ordered_json& row, const char* name) {
  return row.contains(name) ? row[name]["median"].get<double>() : 0;
}

}  // namespace forebay::bench
