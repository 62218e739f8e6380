#include "comm/node_groups.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "comm/values.hpp"
#include "forebay/error.hpp"

namespace forebay {

std::shared_ptr<Communicator> split_into_virtual_nodes(Communicator& node, int ranks_per_node) {
  const int color = ranks_per_node > 0 ? node.rank() / ranks_per_node : 0;
  return node.split(color, node.rank());
}

int ranks_per_node_from_environment() {
  const char* text = std::getenv("FOREBAY_RANKS_PER_NODE");
  if (text == nullptr || *text == '\0') return 0;
  const std::string value = text;
  int ranks = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), ranks);
  if (status != std::errc() || end != value.data() + value.size() || ranks < 1) {
    throw Error(ErrorKind::usage, "FOREBAY_RANKS_PER_NODE is '" + value + "'",
                "set it to a positive number of ranks, or unset it");
  }
  return ranks;
}

NodesOfRanks find_nodes(Communicator& comm, Communicator& node) {
  int first = comm.rank();
  share_value(node, first);
  NodesOfRanks nodes{.first = gather_all(comm, first), .node = {}};
  std::vector<int> known;
  for (const int of_rank : nodes.first) {
    const auto found = std::ranges::find(known, of_rank);
    nodes.node.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(of_rank);
  }
  nodes.count = static_cast<int>(known.size());
  return nodes;
}

int root_count(int ranks, int wanted) {
  constexpr int kRanksForOneRoot = 16;
  const int roots = wanted > 0 ? wanted : (ranks <= kRanksForOneRoot ? 1 : 2);
  return std::clamp(roots, 1, ranks);
}

namespace {

/// `count` of `ranks`, evenly, the first one among them.
void take_evenly(const std::vector<int>& ranks, std::size_t count, std::vector<int>& chosen) {
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(ranks[i * ranks.size() / count]);
}

}  // namespace

std::vector<int> choose_roots(std::span<const int> domains, int roots) {
  std::vector<std::pair<int, std::vector<int>>> members;  // NUMA nodes in the order of their ranks
  for (std::size_t rank = 0; rank < domains.size(); ++rank) {
    auto at = std::ranges::find(members, domains[rank], &std::pair<int, std::vector<int>>::first);
    if (at == members.end()) at = members.insert(at, {domains[rank], {}});
    at->second.push_back(static_cast<int>(rank));
  }
  // One root more for each NUMA node in turn, until all are placed.
  std::vector<std::size_t> counts(members.size());
  for (int placed = 0; placed < roots;) {
    for (std::size_t i = 0; i < members.size() && placed < roots; ++i) {
      if (counts[i] == members[i].second.size()) continue;
      ++counts[i];
      ++placed;
    }
  }
  std::vector<int> chosen;
  for (std::size_t i = 0; i < members.size(); ++i) {
    take_evenly(members[i].second, counts[i], chosen);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace forebay
