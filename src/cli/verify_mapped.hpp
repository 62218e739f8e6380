// forebay verify, for LMDB data whose samples are not simply the records of one database.
#pragma once

#include <cstdint>

#include "cli/dataset_options.hpp"
#include "forebay/samples.hpp"

namespace forebay {

/// Checks every page of every database, then reads and decodes every sample, and prints what is
/// wrong. Throws corrupt when something is.
void verify_mapped(const DatasetOptions& dataset, const Samples& samples, std::uint64_t max_faults);

}  // namespace forebay
