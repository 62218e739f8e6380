#include "read/root_map.hpp"

#include <algorithm>

#include "comm/node_groups.hpp"
#include "forebay/error.hpp"

namespace forebay {

RootMap::RootMap(const StridedOrder& order, RankGroups groups, int wanted_roots)
    : order_(order), groups_(std::move(groups)) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const auto& ranks = groups_[group];
    const int size = static_cast<int>(ranks.size());
    const int roots = root_count(size, wanted_roots);
    plans_.emplace_back(order, ranks, roots);
    for (int root = 0; root < roots; ++root) {
      const auto local_rank = static_cast<std::size_t>(root_rank(root, roots, size));
      roots_.push_back({.rank = ranks[local_rank], .group = group, .local = root});
    }
  }
  std::ranges::sort(roots_, {}, &Root::rank);
}

std::vector<Piece> RootMap::pieces(int root, const WindowPart& part) const {
  const Root& which = roots_[static_cast<std::size_t>(root)];
  return plans_[which.group].pieces(which.local, part);
}

const WindowPlan& RootMap::plan_of_rank(int rank) const {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (std::ranges::find(groups_[group], rank) != groups_[group].end()) return plans_[group];
  }
  throw Error(ErrorKind::usage, "the rank is in no group that shares a stage");
}

std::uint64_t RootMap::largest_share() const {
  std::uint64_t largest = 0;
  for (const WindowPlan& plan : plans_) largest = std::max(largest, plan.entries());
  return largest / order_.coalesce();
}

}  // namespace forebay
