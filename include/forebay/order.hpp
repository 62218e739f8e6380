// Which sample goes to which rank at which iteration: pure functions, no I/O, no MPI.
//
// `strided` is Caffe's data sharding (Pumma et al., TOPC 2019, section 3.1) made exact for any
// number of ranks, and coalesced over C iterations:
//
//   window w      |<------------------------- C * B positions ------------------------->|
//                 | rank 0: C * n_0        | rank 1: C * n_1        | ...                |
//                 | it 0 | it 1 | .. |it C-1|
//
// with s_p = floor(p * B / P) and n_p = s_(p+1) - s_p. Rank p owns the positions from
// w*C*B + C*s_p on and takes n_p of them at each of the C iterations. Position g holds sample
// g mod N: the data set is circular and a batch is always full. The order depends on (N, P, B, C)
// alone, never on who reads.
//
// A run that stopped inside a window, r iterations into it, and goes on with another P or B finds
// C - r shares of every old rank left there. Its positions behind the r * B that were taken stand
// for what is left, in order; behind the old window they stand for themselves again:
//
//   old window    |####------------|####------------|####------------|   # taken, - left
//                     a...........b     c..........d     e..........f
//   new positions             |a..........bc..........de............f|g...
#pragma once

#include <cstdint>
#include <vector>

namespace forebay {

/// `count` consecutive numbers (positions of an order, samples) from `first` on.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const Run&) const = default;
};

/// A stretch of an order that one number of ranks and one batch size worked through.
struct Segment {
  int ranks = 1;
  std::uint64_t batch = 0;
  std::uint64_t iterations = 0;
  bool operator==(const Segment&) const = default;
};

/// A window of which `ranks` ranks with batch `batch` took `iterations` of `coalesce` iterations.
struct PartialWindow {
  std::uint64_t begin = 0;  ///< where it begins, in the positions of those who took it
  int ranks = 1;
  std::uint64_t batch = 1;
  std::uint64_t coalesce = 1;
  std::uint64_t iterations = 0;
  bool operator==(const PartialWindow&) const = default;
};

/// Immutable value; all methods are O(1), or linear in the partial windows that matter yet, and
/// safe from any thread.
class StridedOrder {
 public:
  /// 1 <= entries N <= 2^48, ranks P >= 1, P <= batch B <= 2^32, coalesce C >= 1 with C * B <=
  /// 2^40; throws usage otherwise. `start` (at most 2^62) shifts every position: where a resumed
  /// run goes on. `partial`: the windows that earlier stretches of it left unfinished, in the order
  /// of time; each has 1 <= iterations < coalesce, and what was taken of it ends before the next
  /// one and before `start`.
  StridedOrder(std::uint64_t entries, int ranks, std::uint64_t batch, std::uint64_t coalesce = 1,
               std::uint64_t start = 0, std::vector<PartialWindow> partial = {});

  std::uint64_t entries() const { return entries_; }
  int ranks() const { return ranks_; }
  std::uint64_t batch() const { return batch_; }
  std::uint64_t coalesce() const { return coalesce_; }
  std::uint64_t start() const { return start_; }

  /// s_p: how many samples of a batch go to ranks below `rank`.
  std::uint64_t share_begin(int rank) const;
  /// n_p: how many samples of a batch go to `rank`.
  std::uint64_t share(int rank) const;

  /// What `rank` takes at `iteration`, as global positions.
  Run run(int rank, std::uint64_t iteration) const;
  /// Everything that `rank` takes in `window`: C runs in a row.
  Run window_run(int rank, std::uint64_t window) const;

  /// What `position`, from `start` on, stands for in the order of a run that was never resumed:
  /// itself, except in partial windows. Grows with it.
  std::uint64_t global(std::uint64_t position) const {
    return position >= partial_end_ ? position : mapped(position);
  }
  /// How many positions from `position` on stand for global ones in a row: at least 1, not always
  /// all of them, UINT64_MAX for no end.
  std::uint64_t consecutive(std::uint64_t position) const {
    return position >= partial_end_ ? UINT64_MAX : mapped_in_a_row(position);
  }
  std::uint64_t sample(std::uint64_t position) const { return global(position) % entries_; }
  std::uint64_t epoch(std::uint64_t position) const { return global(position) / entries_; }
  /// Iterations from `start` on until `epochs` epochs of the whole order are covered. Throws usage
  /// when that many epochs have no positions.
  std::uint64_t iterations(std::uint64_t epochs) const;

 private:
  std::uint64_t mapped(std::uint64_t position) const;
  std::uint64_t mapped_in_a_row(std::uint64_t position) const;
  void forget_finished();

  std::uint64_t entries_;
  int ranks_;
  std::uint64_t batch_;
  std::uint64_t coalesce_;
  std::uint64_t start_;
  std::vector<PartialWindow> partial_;  ///< last stretch first; those that matter
  std::uint64_t partial_end_ = 0;       ///< from here on positions stand for themselves
};

}  // namespace forebay
