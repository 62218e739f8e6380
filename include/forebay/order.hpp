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
// A run of whole epochs ends where the last one does. What then remains for its last window, F full
// batches and t samples, is shared likewise: rank p owns F * n_p + floor(s_(p+1) * t / B) -
// floor(s_p * t / B) positions, and takes n_p of them at each of F iterations, the rest at one
// more:
//
//   last window   | rank 0            | rank 1            | ...
//                 | it 0 | .. | tail  | it 0 | .. | tail  |
//
// The tails make the last batch. It is short, filled up or left out, as OrderEnd says; so the end
// changes that batch alone. Positions behind a rank's tail stand for what it is filled up with.
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
#include <string_view>
#include <vector>

namespace forebay {

struct RankRuns;

/// `count` consecutive numbers (positions of an order, samples) from `first` on.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const Run&) const = default;
};

/// What becomes of samples that do not fill the last batch, on every rank with as many iterations:
/// of each epoch, or of a strided run of whole epochs.
enum class OrderEnd : std::uint8_t {
  drop,   ///< they are left out
  pad,    ///< filled up with the rank's own samples, its last ones first, as repeats; a rank that
          ///< has none of its own wraps
  wrap,   ///< filled up with the epoch's first samples, each rank the next ones, as repeats
  exact,  ///< short batches, on some ranks empty ones
};
std::string_view to_string(OrderEnd end);

/// A stretch of an order that one number of ranks and one batch size worked through.
struct Segment {
  int ranks = 1;
  std::uint64_t batch = 0;
  std::uint64_t iterations = 0;
  /// Of a strided order: the limit in epochs of the run, where the stretch came to the window that
  /// the limit makes the last one; else 0.
  std::uint64_t epochs = 0;
  bool operator==(const Segment&) const = default;
};

/// A window of which `ranks` ranks with batch `batch` took `iterations` iterations.
struct PartialWindow {
  std::uint64_t begin = 0;  ///< where it begins, in the positions of those who took it
  int ranks = 1;
  std::uint64_t batch = 1;
  std::uint64_t coalesce = 1;  ///< full batches of the window
  std::uint64_t iterations = 0;
  std::uint64_t tail = 0;  ///< samples behind them, below `batch`: of the last window of a run
  bool operator==(const PartialWindow&) const = default;
};

/// Where a strided run begins.
struct StridedStart {
  std::uint64_t position = 0;  ///< every position is shifted by it; at most 2^62
  /// The windows that earlier stretches left unfinished, in the order of time; each has 1 <=
  /// iterations, fewer than it takes, and what was taken of it ends before the next one and before
  /// `position`.
  std::vector<PartialWindow> partial;
  bool operator==(const StridedStart&) const = default;
};

/// Where it ends.
struct EpochLimit {
  std::uint64_t epochs = 0;  ///< of the whole order, from its position 0 on; 0: the run has no end
  OrderEnd end = OrderEnd::exact;
};

/// Immutable value; all methods are O(1), or linear in the partial windows that matter yet and
/// logarithmic in their ranks, and safe from any thread.
class StridedOrder {
 public:
  /// 1 <= entries N <= 2^48, ranks P >= 1, P <= batch B <= 2^32, coalesce C >= 1 with C * B <=
  /// 2^40; throws usage otherwise, and for more epochs than have positions.
  StridedOrder(std::uint64_t entries, int ranks, std::uint64_t batch, std::uint64_t coalesce = 1,
               StridedStart from = {}, EpochLimit limit = {});

  std::uint64_t entries() const { return entries_; }
  int ranks() const { return ranks_; }
  std::uint64_t batch() const { return batch_; }
  std::uint64_t coalesce() const { return coalesce_; }
  std::uint64_t start() const { return start_; }
  const EpochLimit& limit() const { return limit_; }

  /// s_p: how many samples of a batch go to ranks below `rank`.
  std::uint64_t share_begin(int rank) const;
  /// n_p: how many samples of a batch go to `rank`; of the last one of a run perhaps fewer, see
  /// run().
  std::uint64_t share(int rank) const;

  /// Iterations from `start` to the end of the run; UINT64_MAX where it has none.
  std::uint64_t iterations() const;
  /// How many samples `drop` leaves out at the end, and `pad` and `wrap` fill up with.
  std::uint64_t dropped() const { return limit_.end == OrderEnd::drop ? tail_ : 0; }
  std::uint64_t repeated() const { return fills_up() ? batch_ - tail_ : 0; }

  /// What `rank` takes at `iteration`, below iterations(), as positions.
  Run run(int rank, std::uint64_t iteration) const;
  /// Everything that `rank` takes in `window`: the runs of its iterations, in a row.
  Run window_run(int rank, std::uint64_t window) const;

  /// What `position`, from `start` on, stands for in the order of a run that was never resumed and
  /// has no end: itself, except in partial windows and in the last one. Grows with it, but for
  /// positions that are filled up.
  std::uint64_t global(std::uint64_t position) const {
    return position >= partial_end_ && position < last_begin_ ? position : mapped(position);
  }
  /// How many positions from `position` on stand for global ones in a row: at least 1, not always
  /// all of them, UINT64_MAX for no end.
  std::uint64_t consecutive(std::uint64_t position) const {
    return position >= partial_end_ && last_begin_ == UINT64_MAX ? UINT64_MAX
                                                                 : mapped_in_a_row(position);
  }
  std::uint64_t sample(std::uint64_t position) const { return global(position) % entries_; }
  std::uint64_t epoch(std::uint64_t position) const { return global(position) / entries_; }
  /// Whether the last batch is filled up with it.
  bool repeats(std::uint64_t position) const {
    return position >= last_begin_ && fills_up() && fills(position);
  }

  /// Iterations from `start` on until `epochs` epochs of the whole order are covered, of those that
  /// the run has. Throws usage when that many epochs have no positions.
  std::uint64_t iterations(std::uint64_t epochs) const;
  /// Whether `iterations` reach into the window that the limit makes the last one: only from there
  /// on does it matter.
  bool ends_within(std::uint64_t iterations) const;
  /// Where others go on after `iterations` of this run. Throws usage when it has fewer.
  StridedStart after(std::uint64_t iterations) const;

 private:
  /// A position of the last window: whose it is, and which of that rank's places there; those up
  /// to `owned` are its own.
  struct LastPlace {
    int rank;
    std::uint64_t index;
    std::uint64_t owned;
    bool own() const { return index < owned; }
  };

  void forget_finished();
  void find_end();
  std::uint64_t position_of(std::uint64_t global) const;
  std::uint64_t mapped(std::uint64_t position) const;
  std::uint64_t mapped_in_a_row(std::uint64_t position) const;

  std::uint64_t window_size() const { return coalesce_ * batch_; }
  bool limited() const { return limit_.epochs > 0; }
  bool is_last(std::uint64_t window) const { return limited() && window >= full_windows_; }
  bool fills_up() const {
    return tail_ > 0 && (limit_.end == OrderEnd::pad || limit_.end == OrderEnd::wrap);
  }
  /// Batches that the positions of the last window have room for.
  std::uint64_t last_places() const { return last_full_ + (tail_ > 0 ? 1U : 0U); }
  RankRuns last_runs() const;
  LastPlace last_place(std::uint64_t position) const;
  bool fills(std::uint64_t position) const;
  std::uint64_t fill(const LastPlace& place) const;
  std::uint64_t own_position(int rank, std::uint64_t draw) const;

  std::uint64_t entries_;
  int ranks_;
  std::uint64_t batch_;
  std::uint64_t coalesce_;
  std::uint64_t start_;
  EpochLimit limit_;
  std::vector<PartialWindow> partial_;     ///< last stretch first; those that matter
  std::uint64_t partial_end_ = 0;          ///< from here on positions stand for themselves
  std::uint64_t full_windows_ = 0;         ///< of a limited run: before the last one
  std::uint64_t last_full_ = 0;            ///< F
  std::uint64_t tail_ = 0;                 ///< t
  std::uint64_t last_begin_ = UINT64_MAX;  ///< of the last window, where that has a tail
};

/// The order's C where nobody gives one, of samples that take `file_bytes` in their files: the
/// smallest with which a rank reads 4 MiB in a row (where file systems of many servers reach their
/// rate), but so that an epoch has 16 windows at least, and so reading and computing at the same
/// time; with one rank 1, since any C is then the same order. In whole numbers,
///
///   C = max(1, min(ceil(2^22 / max(1, m * B / P)), N / (16 * B)))   with m = max(1, bytes / N)
///
/// It depends on what is given here alone, so that one command has one order on every machine.
std::uint64_t automatic_coalesce(std::uint64_t entries, std::uint64_t file_bytes, int ranks,
                                 std::uint64_t batch);

/// Where a run on `entries` samples stands after `done`, whose windows have `coalesce` iterations.
/// Throws usage when a stretch did more than it had.
StridedStart start_after(std::uint64_t entries, std::uint64_t coalesce,
                         const std::vector<Segment>& done);

}  // namespace forebay
