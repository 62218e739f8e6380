// How `full` batches and `tail` samples behind them are owned by ranks, each its part in one run:
//
//   |rank 0: full * n_0, tail_0|rank 1: full * n_1, tail_1|...
//
// with tail_p = floor(s_(p+1) * tail / B) - floor(s_p * tail / B), which never exceeds n_p.
#pragma once

#include <cstdint>

namespace forebay {

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

}  // namespace forebay
