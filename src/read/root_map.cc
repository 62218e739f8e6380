#include "read/root_map.hpp"

#include <algorithm>

#include "forebay/error.hpp"

namespace forebay {

RootMap::RootMap(const StridedOrder& order, std::vector<RankGroup> groups, std::uint64_t together)
    : order_(order), groups_(std::move(groups)) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const auto& [ranks, roots] = groups_[group];
    plans_.emplace_back(order, ranks, static_cast<int>(roots.size()), together);
    for (std::size_t root = 0; root < roots.size(); ++root) {
      roots_.push_back({.rank = ranks[static_cast<std::size_t>(roots[root])],
                        .group = group,
                        .local = static_cast<int>(root)});
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
    const auto& ranks = groups_[group].ranks;
    if (std::ranges::find(ranks, rank) != ranks.end()) return plans_[group];
  }
  throw Error(ErrorKind::usage, "the rank is in no group that shares a stage");
}

std::uint64_t RootMap::largest_share() const {
  std::uint64_t largest = 0;
  for (const WindowPlan& plan : plans_) largest = std::max(largest, plan.entries());
  return largest;
}

}  // namespace forebay
