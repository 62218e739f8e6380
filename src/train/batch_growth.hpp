// Batches that grow as training converges (paper 002, 8.4.3).
//
// After each test the gain of accuracy since the test before it, per iteration, is compared with a
// threshold. Where it is smaller, parameters need not be updated as often: the global batch
// doubles, and with it the learning rate, which climbs over some iterations from the old one.
//
//   batch          B      B      2B     2B     4B
//   test            0.80   0.85   0.86   0.88   0.881
//   learning rate  r      r      r -> 2r       2r -> 4r
//
// Or as samples are used again (8.4.3, by the percentage of reused data): with a data set that is
// delivered k times before other samples are read (reuse), the batch doubles with each pass in
// which enough of what was delivered of a filling is reused, p of p + 1 in pass p, and falls back
// when the memory is filled anew: a saw-tooth.
//
//   pass           0  0  0  0 | 1    1  | 2     | 0  0  0  0 | 1 ...         k = 3
//   batch          B  B  B  B | 2B   2B | 4B    | B  B  B  B | 2B
//
// The batch of the data set stays as it is: an iteration takes several of them, and fewer where a
// pass ends. Pure functions.
#pragma once

#include <cstdint>
#include <optional>

namespace forebay {

struct GrowthOptions {
  std::optional<double> threshold;  ///< gain of accuracy per iteration; empty: tests grow nothing
  std::optional<double> reused;     ///< reused part from which a pass doubles; empty: none does
  std::uint64_t limit = 16;         ///< times the first batch; a power of two, or rounded down
  std::uint64_t warmup = 100;       ///< iterations until the learning rate has doubled

  /// Throws usage for values that mean nothing.
  void validate() const;
};

/// What a run knows of it; part of its checkpoints.
struct GrowthState {
  std::uint64_t factor = 1;        ///< of batch and learning rate
  std::uint64_t grown_at = 0;      ///< iterations done when it grew last,
  std::uint64_t tested_at = 0;     ///< and at the last test; 0: there was none
  std::optional<double> accuracy;  ///< of that
  bool operator==(const GrowthState&) const = default;
};

/// Takes the result of a test; whether the batch has grown.
bool take_test(GrowthState& state, const GrowthOptions& options, double accuracy,
               std::uint64_t iteration);

/// How many times the first batch an iteration of pass `pass` takes, where passes double it.
std::uint64_t sawtooth_factor(const GrowthOptions& options, std::uint64_t pass);
/// Before an iteration of pass `pass`; whether the factor has changed.
bool take_pass(GrowthState& state, const GrowthOptions& options, std::uint64_t pass,
               std::uint64_t iteration);

/// What the learning rate is multiplied by, after so many iterations.
double rate_factor(const GrowthState& state, const GrowthOptions& options, std::uint64_t iteration);
/// The same for an iteration that has taken only a part of its batch: that part of it, but not less
/// than the first batch has.
double rate_factor(const GrowthState& state, const GrowthOptions& options, std::uint64_t iteration,
                   double part);

}  // namespace forebay
