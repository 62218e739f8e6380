// Which root reads what into which place, as pure functions.
//
// The ranks that share a stage take, in one window of the order, the entries
//
//   rank 0: it 0 | it 1 | .. | it C-1 || rank 1: it 0 | .. || ...      (entry numbers grow ->)
//
// where every "it" is the rank's share of one iteration. K windows of the order, one behind the
// other, are read together: whoever reads means these by "window". The roots split this list of
// entries into equal consecutive parts. Where the ranks wait to start, a root reads its entries of
// iteration 0 first (phase `first`) and then the others (phase `rest`); later, all in one go (phase
// `whole`), which makes fewer and longer reads.
#pragma once

#include <cstdint>
#include <vector>

#include "forebay/order.hpp"

namespace forebay {

/// Consecutive positions of the order that go into consecutive entries of the window.
struct Piece {
  std::uint64_t position = 0;
  std::uint64_t count = 0;
  std::uint64_t entry = 0;
  bool operator==(const Piece&) const = default;
};

enum class Phase : std::uint8_t { first, rest, whole };

/// What is read at once: the same on all roots at the same step.
struct WindowPart {
  std::uint64_t window = 0;
  Phase phase = Phase::whole;
  std::uint64_t iterations = 1;  ///< only the window's first so many are wanted
};

/// Immutable; safe from any thread.
class WindowPlan {
 public:
  /// `ranks` are the global ranks that share the stage, in their order there; `together` is K.
  WindowPlan(StridedOrder order, std::vector<int> ranks, int roots, std::uint64_t together = 1);

  const StridedOrder& order() const { return order_; }
  int roots() const { return roots_; }
  /// K * C.
  std::uint64_t iterations() const { return together_ * order_.coalesce(); }
  std::uint64_t entries() const { return together_ * first_entry_.back(); }
  /// The entry where local rank `rank` finds sample `position` of iteration `iteration`.
  std::uint64_t entry(int rank, std::uint64_t iteration, std::uint64_t position) const;
  /// What `root` reads for `part`, by entry.
  std::vector<Piece> pieces(int root, const WindowPart& part) const;

 private:
  std::uint64_t root_begin(int root) const;

  StridedOrder order_;
  std::vector<int> ranks_;
  int roots_;
  std::uint64_t together_;
  /// Of a rank in a window of the order, and the total at the end.
  std::vector<std::uint64_t> first_entry_;
};

}  // namespace forebay
