// What is left of a window that was left unfinished, as a map of positions; see forebay/order.hpp.
//
// The map is defined from begin + r * B on, grows strictly, and reaches every position that was not
// taken. So those below a bound are always the ones before some position.
#pragma once

#include <cstdint>

#include "forebay/order.hpp"
#include "order/rank_runs.hpp"

namespace forebay {

/// The positions of a sound window. Methods are O(1), or O(log ranks) inside of it.
class PartialWindowMap {
 public:
  explicit PartialWindowMap(const PartialWindow& window)
      : begin_(window.begin),
        taken_(window.iterations),
        whole_{window.batch, window.ranks, window.coalesce, window.tail},
        left_{window.batch, window.ranks, window.coalesce - window.iterations, window.tail} {}

  /// The first position of the map.
  std::uint64_t begin() const { return begin_ + taken_ * whole_.batch; }
  /// From here on positions stand for themselves.
  std::uint64_t end() const { return begin_ + whole_.length(); }
  /// What `position`, from begin() on, stands for.
  std::uint64_t operator()(std::uint64_t position) const;
  /// How many positions from `position`, which is one of the map's, on stand for ones in a row.
  std::uint64_t in_a_row(std::uint64_t position) const;
  /// The first position that stands for `bound` or more; not above begin() when all do.
  std::uint64_t first_from(std::uint64_t bound) const;

 private:
  std::uint64_t begin_;
  std::uint64_t taken_;  ///< iterations
  RankRuns whole_;
  RankRuns left_;
};

}  // namespace forebay
