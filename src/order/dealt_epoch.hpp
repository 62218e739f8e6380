// The list of an epoch as the ranks of today have it: what earlier ranks took of it is gone, the
// rest is dealt, and the end is filled or cut.
//
//   positions of the epoch's list --earlier segments--> what is left --deal--> draws of a rank
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/epoch_order.hpp"
#include "forebay/order.hpp"

namespace forebay {

// How `full` batches and `tail` samples behind them are owned by ranks, each its part in one run:
//
//   |rank 0: full * n_0, tail_0|rank 1: full * n_1, tail_1|...
//
// with tail_p = floor(s_(p+1) * tail / B) - floor(s_p * tail / B), which never exceeds n_p.

/// s_p: how many samples of a batch go to ranks below `rank`.
inline std::uint64_t share_begin_of(int rank, std::uint64_t batch, int ranks) {
  return static_cast<std::uint64_t>(rank) * batch / static_cast<std::uint64_t>(ranks);
}

/// A value; tail < batch. Methods are O(1) but rank_at().
struct RankRuns {
  std::uint64_t batch = 1;
  int ranks = 1;
  std::uint64_t full = 0;
  std::uint64_t tail = 0;

  std::uint64_t share_begin(int rank) const { return share_begin_of(rank, batch, ranks); }
  std::uint64_t share(int rank) const { return share_begin(rank + 1) - share_begin(rank); }
  std::uint64_t tail_begin(int rank) const { return share_begin(rank) * tail / batch; }
  std::uint64_t tail_of(int rank) const { return tail_begin(rank + 1) - tail_begin(rank); }
  std::uint64_t begin(int rank) const { return full * share_begin(rank) + tail_begin(rank); }
  std::uint64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  std::uint64_t length() const { return full * batch + tail; }

  /// Whose run `index`, below length(), lies in. O(log ranks).
  int rank_at(std::uint64_t index) const {
    int low = 0, high = ranks;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (begin(middle) <= index ? low : high) = middle;
    }
    return low;
  }
  /// Iterations until all ranks together have taken the first `count`, at most length().
  std::uint64_t turns(std::uint64_t count) const {
    if (count == 0) return 0;
    const int last = rank_at(count - 1);
    const std::uint64_t own = (count - begin(last) + share(last) - 1) / share(last);
    if (last == 0) return own;
    // Those below it take all that they have.
    const std::uint64_t below = full + (tail_begin(last) > 0 ? 1 : 0);
    return own > below ? own : below;
  }
};

// How the positions 0..n-1 of a list are shared by P ranks with batch B; see
// forebay/epoch_order.hpp.
//
//   by_batch  position t * B + s_p + i is draw t * n_p + i of rank p; the last r = n mod B
//   positions
//             are shared from floor(s_p * r / B) on, which never exceeds a rank's n_p
//   by_runs   each rank has a run of positions, and draws them in order

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

// What is left of a list dealt by runs, after every rank has taken some draws: a list of its own.
//
//   list      |####--------|####--------|####-----|     # taken, - left
//   leftover  |aaaaaaaabbbbbbbbccccc|

/// Immutable value; O(log P) but for construction, which is O(P).
class Leftover {
 public:
  /// Of `deal`, which is by runs, after `iterations`.
  Leftover(const Deal& deal, std::uint64_t iterations);

  std::uint64_t length() const { return ends_.back(); }
  /// Where the list has what `position` of the leftover has.
  std::uint64_t operator()(std::uint64_t position) const;
  /// The positions around `position`, of the leftover, that are in a row in the list too.
  Run in_a_row(std::uint64_t position) const;

 private:
  std::size_t rank_at(std::uint64_t position) const;

  std::vector<std::uint64_t> ends_;    ///< of each rank's part, in the leftover
  std::vector<std::uint64_t> starts_;  ///< of each rank's part, in the list
};

/// Immutable value; O(1), or O(log P) a segment where lists are dealt by runs.
class DealtEpoch {
 public:
  /// `first` is the epoch's list as its first ranks have it: those of the first segment, or these.
  /// The last segment goes on where its ranks and batch are `ranks` and `batch`. Throws usage when
  /// a segment did more than there was.
  DealtEpoch(Deal first, OrderEnd end, const std::vector<Segment>& done, int ranks,
             std::uint64_t batch);

  const Deal& deal() const { return deal_; }
  /// Whether other ranks, or with another batch, have begun this epoch.
  bool resumed() const { return resumed_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t first_iteration() const { return first_iteration_; }
  std::uint64_t dropped() const;
  std::uint64_t repeated() const;

  /// Draws of `rank`, and those among them that are no repeats: the first ones.
  std::uint64_t draws(int rank) const;
  std::uint64_t own(int rank) const;
  /// The position of a draw in the epoch's list.
  std::uint64_t position(int rank, std::uint64_t draw) const;
  /// Draws from `draw` on whose positions follow each other: at least 1, not always all there are.
  std::uint64_t in_a_row(int rank, std::uint64_t draw) const;
  /// The draws around `draw`, of its kind (repeat or not), whose positions lie in `region`, which
  /// has its own. By runs: those that follow each other there.
  Run draws_in(const Run& region, int rank, std::uint64_t draw) const;
  /// Not by runs: the position that iteration `iteration` begins at; size() behind the end.
  std::uint64_t begin_of(std::uint64_t iteration) const;
  /// Not by runs: how many own draws of `rank` have positions below `position`.
  std::uint64_t draws_below(int rank, std::uint64_t position) const;

 private:
  /// Own draws, or positions, before and from a given one on.
  struct Reach {
    std::uint64_t back;
    std::uint64_t forward;
  };

  /// Of this deal of what is left; all ranks the same.
  std::uint64_t steps_of_deal() const;
  void require_possible(const Segment& segment) const;
  void leave(const Segment& segment, int next_ranks, std::uint64_t next_batch);
  std::uint64_t in_epoch(std::uint64_t position) const;
  /// How far from `position` of the list after the first `level` segments on the epoch's list has
  /// the same in a row, within `region`.
  Reach reach(std::size_t level, std::uint64_t position, const Run& region) const;
  Run own_draws_in(const Run& region, int rank, std::uint64_t draw) const;
  Run repeats_in(const Run& region, int rank, std::uint64_t draw) const;
  /// Which own draw a repeat of a rank that goes back repeats.
  std::uint64_t repeated_draw(int rank, std::uint64_t draw) const;
  /// The position of a repeat of a rank that wraps.
  std::uint64_t wrapped(int rank, std::uint64_t draw) const;
  bool goes_back(int rank) const { return end_ == OrderEnd::pad && deal_.draws(rank) > 0; }

  Deal deal_;
  OrderEnd end_;
  std::uint64_t size_;
  std::uint64_t shift_ = 0;       ///< by batch: what earlier ranks took
  std::vector<Leftover> before_;  ///< by runs: of each earlier segment, oldest first
  bool resumed_ = false;
  std::uint64_t steps_ = 0;
  std::uint64_t first_iteration_ = 0;
};

}  // namespace forebay
