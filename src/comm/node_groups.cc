#include "comm/node_groups.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

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

int root_count(int ranks, int wanted) {
  constexpr int kRanksForOneRoot = 16;
  const int roots = wanted > 0 ? wanted : (ranks <= kRanksForOneRoot ? 1 : 2);
  return std::clamp(roots, 1, ranks);
}

int root_rank(int root, int roots, int ranks) {
  return static_cast<int>(static_cast<long>(root) * ranks / roots);
}

int root_of_rank(int rank, int roots, int ranks) {
  for (int root = 0; root < roots; ++root) {
    if (root_rank(root, roots, ranks) == rank) return root;
  }
  return -1;
}

}  // namespace forebay
