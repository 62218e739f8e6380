// forebay verify, for files with fields: HDF5, .npy, CIFAR-10, raw records.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cli/dataset_options.hpp"
#include "forebay/error.hpp"

namespace forebay {

/// Reads samples [first, first + count) by `read`, and halves what cannot be read until it is known
/// which samples cannot, which go to `note`. Throws what says nothing of a sample.
void find_faults(std::uint64_t first, std::uint64_t count,
                 const std::function<void(std::span<const std::uint64_t> ids)>& read,
                 const std::function<void(std::uint64_t sample, const Error& error)>& note);

/// Reads and decodes every sample, and prints what is wrong. Throws corrupt when something is.
void verify_samples(const DatasetOptions& dataset, std::uint64_t max_faults);

}  // namespace forebay
