// What is left of a window that was left unfinished, as a map of positions; see forebay/order.hpp.
//
// The map is defined from begin + r * B on, grows strictly, and reaches every position that was not
// taken. So those below a bound are always the ones before some position.
#pragma once

#include <cstdint>

#include "forebay/order.hpp"

namespace forebay {

/// s_p: how many samples of a batch go to ranks below `rank`.
inline std::uint64_t share_begin_of(int rank, std::uint64_t batch, int ranks) {
  return static_cast<std::uint64_t>(rank) * batch / static_cast<std::uint64_t>(ranks);
}

/// The positions of a sound window. All methods are O(1).
class PartialWindowMap {
 public:
  explicit PartialWindowMap(const PartialWindow& window)
      : window_(window), left_(window.coalesce - window.iterations) {}

  /// The first position of the map.
  std::uint64_t begin() const { return window_.begin + window_.iterations * window_.batch; }
  /// From here on positions stand for themselves.
  std::uint64_t end() const { return window_.begin + window_.coalesce * window_.batch; }
  /// What `position`, from begin() on, stands for.
  std::uint64_t operator()(std::uint64_t position) const;
  /// How many positions from `position`, which is one of the map's, on stand for ones in a row.
  std::uint64_t in_a_row(std::uint64_t position) const;
  /// The first position that stands for `bound` or more; not above begin() when all do.
  std::uint64_t first_from(std::uint64_t bound) const;

 private:
  std::uint64_t share_begin(int rank) const {
    return share_begin_of(rank, window_.batch, window_.ranks);
  }
  /// Who takes sample `index` of a batch.
  int rank_of(std::uint64_t index) const;

  const PartialWindow& window_;
  std::uint64_t left_;  ///< iterations that were not taken
};

}  // namespace forebay
