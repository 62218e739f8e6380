#include "forebay/graph.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "sync/text_digest.hpp"

namespace forebay {

namespace {

[[noreturn]] void refuse(const std::string& happened, const std::string& remedy) {
  throw Error(ErrorKind::usage, "graph: " + happened, remedy);
}

/// Bounded step by step: a product of hostile extents must not wrap around.
bool fits(const GraphNode& node) {
  std::uint64_t most = Graph::kLargestTensor / size_of(node.type);
  for (const std::uint64_t extent : node.shape) {
    if (extent == 0) return true;
    most /= extent;
    if (most == 0) return false;
  }
  return true;
}

}  // namespace

std::size_t Graph::add(GraphNode node) {
  if (node.name.empty()) refuse("a node without a name", "name every node");
  if (node.name.size() > kLongestName) {
    refuse(fmt::format("a node's name of {} bytes, where {} are allowed", node.name.size(),
                       kLongestName),
           "shorten it");
  }
  if (node.collective && !fits(node)) {
    refuse(fmt::format("node '{}' transfers more than 2^48 bytes", printable_key(node.name)),
           "correct its shape");
  }
  if (nodes_.size() == std::numeric_limits<std::uint32_t>::max()) {
    refuse("more than 2^32 - 1 nodes", "cut the graph");
  }
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  if (!numbers_.try_emplace(node.name, number).second) {
    refuse(fmt::format("two nodes are named '{}'", printable_key(node.name)), "name each apart");
  }
  nodes_.push_back(std::move(node));
  needs_.emplace_back();
  return number;
}

void Graph::require_node(std::size_t node) const {
  if (node < nodes_.size()) return;
  refuse(fmt::format("an edge names node {} of {}", node, nodes_.size()),
         "add a node before its edges");
}

void Graph::connect(std::size_t from, std::size_t to) {
  require_node(from);
  require_node(to);
  needs_[to].push_back(static_cast<std::uint32_t>(from));
  ++edges_;
}

void Graph::connect(std::string_view from, std::string_view to) { connect(find(from), find(to)); }

std::span<const GraphNode> Graph::nodes() const { return nodes_; }

std::span<const std::uint32_t> Graph::needs(std::size_t node) const {
  require_node(node);
  return needs_[node];
}

std::size_t Graph::edges() const { return edges_; }

std::size_t Graph::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  refuse(fmt::format("no node is named '{}'", printable_key(name)),
         "add the node, or correct the edge or fetch that names it");
}

std::vector<std::uint64_t> digests(const Graph& graph) {
  std::vector<std::uint64_t> all;
  all.reserve(graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const GraphNode& node = graph.nodes()[i];
    std::uint64_t digest = digest_of(node.name);
    if (node.collective) digest = digest_of(digest, node.type, node.reduction, node.shape);
    for (const std::uint32_t need : graph.needs(i)) digest = mix_key({digest, need});
    all.push_back(digest);
  }
  return all;
}

}  // namespace forebay
