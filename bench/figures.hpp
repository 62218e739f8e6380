// Figures of programs that measure one thing many times.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/process_usage.hpp"

namespace forebay {

/// The word behind `name` on the command line; `otherwise` where it is not there.
inline std::string option(std::span<char*> words, std::string_view name, std::string otherwise) {
  const auto found =
      std::ranges::find(words, name, [](char* word) { return std::string_view(word); });
  return words.end() - found < 2 ? otherwise : std::string(found[1]);
}

/// Of all threads of this process.
inline double process_cpu_seconds() {
  const ProcessUsage usage = process_usage();
  return usage.user_seconds + usage.system_seconds;
}

/// Values of one figure.
class Series {
 public:
  void add(double value) { values_.push_back(value); }
  double quantile(double q) const {
    if (values_.empty()) return 0;
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    const double place = std::ceil(q * static_cast<double>(sorted.size())) - 1;
    return sorted[static_cast<std::size_t>(std::max(place, 0.0))];
  }
  double median() const { return quantile(0.5); }
  nlohmann::ordered_json json() const {
    return {
        {"median", median()}, {"min", quantile(0)}, {"max", quantile(1)}, {"runs", values_.size()}};
  }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

}  // namespace forebay
