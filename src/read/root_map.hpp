// All roots of all nodes, and what each of them reads: known to every root, so that they can tell
// without asking who has what they need and who needs what they have.
//
// Roots are numbered by their global rank, as in the communicator of the roots.
#pragma once

#include <vector>

#include "read/window_plan.hpp"

namespace forebay {

/// Ranks that share a stage.
struct RankGroup {
  std::vector<int> ranks;  ///< global, in their order there
  std::vector<int> roots;  ///< those who read, as numbers in `ranks`, ascending
};

/// Immutable; safe from any thread.
class RootMap {
 public:
  /// Every group has ranks and roots. `together`: see WindowPlan.
  RootMap(const StridedOrder& order, std::vector<RankGroup> groups, std::uint64_t together = 1);

  const StridedOrder& order() const { return order_; }
  int roots() const { return static_cast<int>(roots_.size()); }
  /// What `root` reads for `part`, by entry.
  std::vector<Piece> pieces(int root, const WindowPart& part) const;
  /// The group of ranks that `rank` belongs to.
  const WindowPlan& plan_of_rank(int rank) const;
  /// The most samples that one group takes of a window that is read.
  std::uint64_t largest_share() const;

 private:
  struct Root {
    int rank = 0;  ///< global
    std::size_t group = 0;
    int local = 0;  ///< its number among the roots of its group
  };

  StridedOrder order_;
  std::vector<RankGroup> groups_;
  std::vector<WindowPlan> plans_;  ///< a group
  std::vector<Root> roots_;
};

}  // namespace forebay
