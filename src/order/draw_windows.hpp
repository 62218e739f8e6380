// Windows of an epoch for ranks that read together: whose buffers are loaded in which step, as a
// pure function of the iterations, so that all ranks and nodes have the same windows in an epoch.
//
//   iterations   |0 1 2 3|4 5 6  |7 8 9 10|11 ..        window w begins at T(w) = floor(w * L)
//   rank 0       |unit---|unit--.|.unit---|..           L: iterations that the longest buffer
//   rank 1       |un.unit|----.un|it---.un|..              serves, at least 1
//
// A window loads the buffers of all ranks that begin to serve in its iterations. A buffer serves L
// iterations at most, so one that begins before T(w + 1) ends at T(w + 2) at the latest: three
// windows hold all that an iteration needs. Whoever holds the batch before needs one more.
#pragma once

#include <cstdint>

#include "forebay/epoch_order.hpp"

namespace forebay {

/// Immutable value; O(1).
class DrawWindows {
 public:
  /// Of an order that is new in every epoch, whose ranks draw from their own buffers alone, and
  /// whose units (where it has some) nobody else has begun. `resumed` as in most_loaded().
  DrawWindows(const OrderOptions& order, bool resumed);

  /// The window whose buffers begin at `iteration` of an epoch: the last one that does not begin
  /// later.
  std::uint64_t at(std::uint64_t iteration) const;
  /// T(window).
  std::uint64_t begin(std::uint64_t window) const;
  /// Windows of an epoch of `iterations`.
  std::uint64_t count(std::uint64_t iterations) const {
    return iterations == 0 ? 0 : at(iterations - 1) + 1;
  }
  /// Samples that one rank loads in a window, at most.
  std::uint64_t most_loaded() const { return most_loaded_; }
  /// Windows that have to be in memory at the same time, at least.
  int at_once() const { return aligned_ ? 1 : 4; }

 private:
  std::uint64_t draws_;  ///< L is draws_ / share_
  std::uint64_t share_;
  bool aligned_;
  std::uint64_t most_loaded_;
};

}  // namespace forebay
