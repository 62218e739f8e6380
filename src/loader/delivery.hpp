// A batch on its way through a Pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "forebay/loader.hpp"

namespace forebay {

/// What next() gives.
struct Delivery {
  std::vector<Sample> samples;
  std::uint64_t epoch = 0;      ///< of the first sample
  std::uint64_t from = 0;       ///< what is published in the stage from here on must stay
  std::uint64_t next_from = 0;  ///< the same of the batch behind it
  /// Samples that could not wait in the stage for the rest of their batch.
  std::vector<std::unique_ptr<std::byte[]>> copies;
  std::uint64_t iteration = 0;
  BatchPass pass;
  std::uint64_t epochs_done = 0;  ///< once it is delivered
  /// Of the samples; null when they are delivered as stored.
  std::shared_ptr<const DecodedArrays> arrays = {};
  std::vector<SkippedSample> skipped = {};  ///< which are not among the samples
};

}  // namespace forebay
