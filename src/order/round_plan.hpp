// How `in_memory` cuts a data set into units and rounds; see forebay/epoch_order.hpp.
#pragma once

#include <cstdint>

#include "forebay/epoch_order.hpp"
#include "order/unit_order.hpp"

namespace forebay {

struct RoundPlan {
  UnitCut cut;
  std::uint64_t units_a_round;  ///< N_c; all of them when the ratio is 1

  std::uint64_t rounds() const { return (cut.units() - 1) / units_a_round + 1; }
};

/// N_mem = floor(R * N): the samples that all ranks hold together in one round.
std::uint64_t samples_in_memory(const OrderOptions& options);

/// Rounds that never hold more than N_mem samples: as many units as fit, the largest ones counted.
/// Throws usage when not one unit fits.
RoundPlan plan_rounds(const OrderOptions& options);

}  // namespace forebay
