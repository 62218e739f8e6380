// What is left of a list dealt by runs, after every rank has taken some draws: a list of its own.
//
//   list      |####--------|####--------|####-----|     # taken, - left
//   leftover  |aaaaaaaabbbbbbbbccccc|
#pragma once

#include <cstdint>
#include <vector>

#include "order/deal.hpp"

namespace forebay {

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

}  // namespace forebay
