// How the positions 0..n-1 of a list are shared by P ranks with batch B; see
// forebay/epoch_order.hpp.
//
//   by_batch  position t * B + s_p + i is draw t * n_p + i of rank p; the last r = n mod B
//   positions
//             are shared from floor(s_p * r / B) on, which never exceeds a rank's n_p
//   by_runs   each rank has a run of positions, and draws them in order
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/order.hpp"
#include "order/rank_runs.hpp"

namespace forebay {

/// The rank whose share of 0..count-1, from floor(rank * count / P) on, has `index`. count * ranks
/// is below 2^64.
inline int rank_with(std::uint64_t index, std::uint64_t count, int ranks) {
  const std::uint64_t scaled = (index + 1) * static_cast<std::uint64_t>(ranks);
  return static_cast<int>((scaled + count - 1) / count - 1);
}

/// Immutable value; O(1) but for construction by runs, which is O(P).
class Deal {
 public:
  /// 1 <= ranks <= batch <= 2^32, length <= 2^56.
  static Deal by_batch(std::uint64_t length, int ranks, std::uint64_t batch);
  /// Rank p has the positions from begins[p] up to begins[p + 1]; begins[0] is 0.
  static Deal by_runs(std::vector<std::uint64_t> begins, std::uint64_t batch);
  /// By runs as long as each rank's share of a batch asks for.
  static Deal by_fair_runs(std::uint64_t length, int ranks, std::uint64_t batch);

  bool in_runs() const { return !begins_.empty(); }
  std::uint64_t length() const { return length_; }
  int ranks() const { return runs_.ranks; }
  std::uint64_t batch() const { return runs_.batch; }
  std::uint64_t share_begin(int rank) const { return runs_.share_begin(rank); }
  std::uint64_t share(int rank) const { return runs_.share(rank); }

  /// How many draws `rank` has.
  std::uint64_t draws(int rank) const { return draws_before(rank + 1) - draws_before(rank); }
  /// How many draws the ranks below `rank`, which may be P, have.
  std::uint64_t draws_before(int rank) const;
  /// The position of draw `draw` of `rank`.
  std::uint64_t position(int rank, std::uint64_t draw) const;
  /// How many draws, from `draw` of `rank` on, have positions in a row.
  std::uint64_t in_a_row(int rank, std::uint64_t draw) const;
  /// How many draws of `rank` are at positions below `position`.
  std::uint64_t draws_below(int rank, std::uint64_t position) const;

  /// Iterations until every rank has run out, and until the first one has.
  std::uint64_t most_iterations() const { return most_iterations_; }
  std::uint64_t least_iterations() const { return least_iterations_; }

 private:
  Deal(std::uint64_t length, int ranks, std::uint64_t batch, std::vector<std::uint64_t> begins);

  std::uint64_t length_;
  RankRuns runs_;  ///< full batches and the last r
  std::vector<std::uint64_t> begins_;
  std::uint64_t most_iterations_;
  std::uint64_t least_iterations_;
};

}  // namespace forebay
