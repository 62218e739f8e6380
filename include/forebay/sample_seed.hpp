// The seed of one sample in one epoch, for augmentation.
#pragma once

#include <cstdint>

namespace forebay {

/// A seed for whatever is random about delivering `sample` in `epoch` of the run with `run_seed`:
/// crops, flips, noise. It does not depend on who delivers the sample, or when, so a run on other
/// ranks augments alike.
///
///   fold(fold(fold(fold(0, "sample"), run_seed), epoch), sample), mixed once more
///   fold(key, number) = mix(key + 2^64 / golden ratio) xor mix(number + 1)
///
/// with mix and the folding of src/core/mix.hpp and "sample" = 1: integers only, hence the same on
/// every platform and in every version. Pure; safe from any thread; some nanoseconds.
std::uint64_t sample_seed(std::uint64_t run_seed, std::uint64_t epoch, std::uint64_t sample);

}  // namespace forebay
