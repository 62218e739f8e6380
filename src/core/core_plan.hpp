// How the policy `partition` divides cores: see forebay/placement.hpp. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "core/topology.hpp"
#include "forebay/placement.hpp"

namespace forebay {

/// The slice of the `rank`-th of `ranks` that may all run on `cores`. Where there are fewer cores
/// than ranks, each gets one of them in turn: the loads of two cores differ by one rank at most.
/// `cores` is not empty.
std::span<const CoreThreads> slice_of(std::span<const CoreThreads> cores, int rank, int ranks);

/// Divides the slice of a rank between its components. `slice` is not empty.
CorePlan divide(std::span<const CoreThreads> slice, const ComponentThreads& threads);

}  // namespace forebay
