// All roots of all nodes, and what each of them reads: known to every root, so that they can tell
// without asking who has what they need and who needs what they have.
//
// Roots are numbered by their global rank, as in the communicator of the roots.
#pragma once

#include <vector>

#include "read/window_plan.hpp"

namespace forebay {

/// The ranks of every group that shares a stage, each in its order there, by its first rank.
using RankGroups = std::vector<std::vector<int>>;

/// Immutable; safe from any thread.
class RootMap {
 public:
  /// `wanted_roots` a group: see root_count(). 1 <= the ranks of each group.
  RootMap(const StridedOrder& order, RankGroups groups, int wanted_roots);

  const StridedOrder& order() const { return order_; }
  int roots() const { return static_cast<int>(roots_.size()); }
  /// What `root` reads for `part`, by entry.
  std::vector<Piece> pieces(int root, const WindowPart& part) const;
  /// The group of ranks that `rank` belongs to.
  const WindowPlan& plan_of_rank(int rank) const;
  /// The most samples that one group takes of a batch.
  std::uint64_t largest_share() const;

 private:
  struct Root {
    int rank = 0;  ///< global
    std::size_t group = 0;
    int local = 0;  ///< its number among the roots of its group
  };

  StridedOrder order_;
  RankGroups groups_;
  std::vector<WindowPlan> plans_;  ///< a group
  std::vector<Root> roots_;
};

}  // namespace forebay
