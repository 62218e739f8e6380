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
#pragma once

#include <cstdint>

namespace forebay {

/// `count` consecutive global positions from `first` on.
struct Run {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const Run&) const = default;
};

/// Immutable value; all methods are O(1) and safe from any thread.
class StridedOrder {
 public:
  /// 1 <= entries N <= 2^48, ranks P >= 1, P <= batch B <= 2^32, coalesce C >= 1 with C * B <=
  /// 2^40; throws usage otherwise. `start` (at most 2^62) shifts every position: where a resumed
  /// run goes on.
  StridedOrder(std::uint64_t entries, int ranks, std::uint64_t batch, std::uint64_t coalesce = 1,
               std::uint64_t start = 0);

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

  std::uint64_t sample(std::uint64_t position) const { return position % entries_; }
  std::uint64_t epoch(std::uint64_t position) const { return position / entries_; }
  /// Iterations from `start` on until `epochs` epochs of the whole order are covered. Throws usage
  /// when that many epochs have no positions.
  std::uint64_t iterations(std::uint64_t epochs) const;

 private:
  std::uint64_t entries_;
  int ranks_;
  std::uint64_t batch_;
  std::uint64_t coalesce_;
  std::uint64_t start_;
};

}  // namespace forebay
