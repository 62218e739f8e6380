// forebay verify, for files with fields: HDF5, .npy, CIFAR-10, raw records.
#pragma once

#include <cstdint>

#include "cli/dataset_options.hpp"

namespace forebay {

/// Reads and decodes every sample, and prints what is wrong. Throws corrupt when something is.
void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults);

}  // namespace forebay
