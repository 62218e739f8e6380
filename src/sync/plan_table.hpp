// A plan, prepared for many threads that look up where a request belongs. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "forebay/graph.hpp"
#include "sync/request.hpp"

namespace forebay {

class PlanTable {
 public:
  struct Place {
    std::uint32_t buffer = 0;
    std::uint32_t slot = 0;
  };

  explicit PlanTable(TransferPlan plan);
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  /// Empty for a request that is not exactly what the plan has under its name.
  std::optional<Place> find(const Request& request) const;
  const TransferPlan& plan() const { return plan_; }
  std::size_t tensors() const { return places_.size(); }
  /// Of its tensors, whatever their order: see MergedStep.
  std::uint64_t digest() const { return digest_; }

 private:
  TransferPlan plan_;
  std::unordered_map<std::string_view, Place> places_;  ///< names are those of plan_
  std::uint64_t digest_ = 0;
};

std::vector<std::byte> encode(const TransferPlan& plan);
/// Throws communication.
TransferPlan decode_plan(std::span<const std::byte> message);

}  // namespace forebay
