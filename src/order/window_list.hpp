// The lists of `shuffled` and `listed`, which have nothing to load together but batches: a window
// of W iterations is in memory at a time, and delivered k times (reuse).
//
//   positions  |W * B, pass 0|W * B, pass 1|W * B, pass 0|W * B, pass 1|...|tail|tail|   k = 2
//
// A pass behind the first one is a permutation of what the ranks of the scope (one, a node's, all)
// have taken in the first pass: their positions in the batches of the window stay theirs. The last
// N mod B samples cannot be shared that way, and are repeated in their order.
#pragma once

#include "order/epoch_list.hpp"

namespace forebay {

class WindowList : public EpochList {
 public:
  /// `samples` without reuse. `key` is of the permutations of windows.
  WindowList(const OrderOptions& options, std::uint64_t samples, std::uint64_t epoch);

  std::uint64_t size() const final { return reuse_ * samples_; }
  std::uint64_t sample(std::uint64_t position) const final {
    return plain(reuse_ > 1 ? first_pass(position) : position);
  }
  std::uint64_t pass_of(std::uint64_t position) const final;
  Buffer buffer(const DealtEpoch& dealt, int rank, std::uint64_t draw) const final;
  Place place(const DealtEpoch& dealt, int rank, std::uint64_t draw) const final;

 protected:
  /// The sample at `position` of the list without reuse.
  virtual std::uint64_t plain(std::uint64_t position) const = 0;

 private:
  /// The position in the list without reuse of what `position` repeats.
  std::uint64_t first_pass(std::uint64_t position) const;
  std::uint64_t recombined(std::uint64_t window, std::uint64_t batches, std::uint64_t number,
                           std::uint64_t pass) const;
  /// The draws of `rank` in windows, for those who begin the epoch; all others are loaded singly.
  std::uint64_t draws_in_windows(const DealtEpoch& dealt, int rank) const;
  Run draws_together(const DealtEpoch& dealt, int rank, std::uint64_t draw) const;
  std::uint64_t share_begin(int rank) const { return share_begin_of(rank, batch_, ranks_); }

  std::uint64_t key_;
  std::uint64_t samples_;
  int ranks_;
  std::uint64_t batch_;
  std::uint64_t window_;
  std::uint64_t reuse_;
  ReuseScope scope_;
  int ranks_per_node_;
};

}  // namespace forebay
