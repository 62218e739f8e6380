// How random an order is: by formula, and measured on the order as it is drawn.
//
// The randomization level (Zhu et al., DeepIO, paper 004, equations 4 and 5, read as
// papers/README.md does) compares the chance P(i) of the i-th sample of an epoch with that of a
// full shuffle, 1 / (N - i):
//
//   RL = H / H_full     H = sum of log2(1 / P(i)) / (N - i)
//                       H_full = sum of log2(N - i) / (N - i)
//
//   in_memory   P(i) = N_c / (N_f - N_c * r) * 1 / (N_mem - i mod N_mem)
//               in round r = floor(i / N_mem)
//
//   shuffled    P(i) = 1 / ceil((N - i) / k), k neighbours kept together
//
//   grouped     as in_memory with N_mem = P * G, N_c = P, N_f = N / G: at any time the
//               batches of P ranks come from P groups, drawn from those that are left
//
// Local shuffling does no harm while training takes fewer than N / subsets epochs (Meng et al.
// 2019, as paper 003 uses it, IV-E): S < N / G with G the number of groups.
#pragma once

#include <cstdint>
#include <optional>

#include "forebay/epoch_order.hpp"

namespace forebay {

/// RL, 1 for a full shuffle; nothing for `listed`, whose order the caller knows. `options` are
/// valid. Takes milliseconds for any number of samples.
std::optional<double> randomization_level(const OrderOptions& options);

/// Parts of the data set whose samples are not mixed with those of other parts in an epoch: groups,
/// rounds, 1 for a shuffle of everything; nothing for `listed`.
std::optional<std::uint64_t> subsets(const OrderOptions& options);
/// N / subsets: training should take fewer epochs.
std::optional<double> epochs_limit(const OrderOptions& options);

/// Figures of one epoch as its global batches come: iteration by iteration, rank by rank. Of the
/// first delivery of each sample where samples are used again.
struct MeasuredOrder {
  /// Part of the pairs of neighbours in the data set that follow each other here. Full shuffle:
  /// 1/N; k kept together: (k - 1) / k.
  double neighbours_kept = 0;
  /// Correlation of place and sample id, -1 to 1. Full shuffle: 0, within some 1 / sqrt(N).
  double correlation = 0;
  /// How far apart neighbours come, on average, over what a full shuffle does (N / 3): 1 is as far,
  /// in_memory with large units comes to its ratio.
  double neighbour_distance = 0;
  /// Deliveries between two of one sample, where samples are used again: mean and least.
  double reuse_distance = 0;
  std::uint64_t least_reuse_distance = 0;
};

/// The most deliveries that measure_order() takes: it lists them, at 16 bytes each.
inline constexpr std::uint64_t kMostMeasured = std::uint64_t{1} << 26;

/// Draws the whole epoch; `order` is one that nobody has begun. Throws usage above kMostMeasured.
MeasuredOrder measure_order(const EpochOrder& order);

}  // namespace forebay
