// forebay verify, sample by sample: for whatever is not simply the records of one LMDB database.
#pragma once

#include <cstdint>

#include "cli/dataset_options.hpp"

namespace forebay {

/// Reads and decodes every sample, behind all pages of LMDB databases, and prints what is wrong.
/// Throws corrupt when something is.
void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults);

}  // namespace forebay
