// What an order loads into one buffer, as what a reader reads.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "read/reading_list.hpp"

namespace forebay {

/// `count` samples of `loads`, from the one at place `first` on, sorted by sample: near to how they
/// lie in the file. Their entries count from 0.
std::vector<SampleRun> runs_of(const std::vector<Run>& loads, std::uint64_t first,
                               std::uint64_t count);

/// Samples of all loads.
std::uint64_t samples_in(const std::vector<Run>& loads);

}  // namespace forebay
