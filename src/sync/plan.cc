// The order and grouping of transfers (paper 002 6.3.4), in three passes:
//
//   1. depth-first search from the fetches along what nodes need: nodes in post-order, in which
//      whatever a node needs precedes it; what it does not reach is searched for circles only
//   2. along that order, the depth of each node; then numbers: by depth, then by insertion
//   3. along the numbers, packing. For every node n, after(n) is the last buffer that holds any
//      transfer which n depends on, through however many nodes. A transfer t may join buffer b if
//      b > after(t): then everything that t waits for lies in earlier buffers. That is all that
//      freedom from deadlock asks for, and no two transfers of b can depend on each other.
//      after() is a maximum along edges, so no reachability has to be computed.
//
// Of each (type, reduction) only the youngest buffer may grow: filling gaps of older ones would
// make early transfers wait for late tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/mix.hpp"
#include "forebay/error.hpp"
#include "forebay/graph.hpp"
#include "sync/text_digest.hpp"

namespace forebay {
namespace {

constexpr std::size_t kNamedInCircle = 12;

/// Pass 1.
class DependencySearch {
 public:
  explicit DependencySearch(const Graph& graph)
      : graph_(graph), state_(graph.nodes().size(), State::unseen) {}

  void visit(std::uint32_t start) {
    if (state_[start] != State::unseen) return;
    enter(start);
    while (!way_.empty()) {
      auto& [node, next] = way_.back();
      const auto needs = graph_.needs(node);
      if (next == needs.size()) {
        state_[node] = State::done;
        order_.push_back(node);
        way_.pop_back();
        continue;
      }
      const std::uint32_t need = needs[next++];
      if (state_[need] == State::on_way) refuse_circle(need);
      if (state_[need] == State::unseen) enter(need);
    }
  }

  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  enum class State : std::uint8_t { unseen, on_way, done };

  void enter(std::uint32_t node) {
    state_[node] = State::on_way;
    way_.emplace_back(node, 0);
  }

  std::string name(std::uint32_t node) const {
    return "'" + printable_key(graph_.nodes()[node].name) + "'";
  }

  [[noreturn]] void refuse_circle(std::uint32_t closing) const {
    std::string names;
    std::size_t named = 0;
    auto step = std::find_if(way_.begin(), way_.end(),
                             [closing](const auto& on_way) { return on_way.first == closing; });
    for (; step != way_.end() && named < kNamedInCircle; ++step, ++named) {
      names += name(step->first) + " needs ";
    }
    names += step == way_.end() ? name(closing) : "...";
    throw Error(ErrorKind::usage, "graph: a circle: " + names,
                "no node can need its own result: remove one of these edges");
  }

  const Graph& graph_;
  std::vector<State> state_;
  std::vector<std::pair<std::uint32_t, std::size_t>> way_;  ///< node, the next of its needs
  std::vector<std::uint32_t> order_;
};

/// Nodes that the fetches need, in an order of dependencies.
std::vector<std::uint32_t> nodes_to_execute(const Graph& graph,
                                            std::span<const std::string> fetches) {
  DependencySearch search(graph);
  for (const std::string& fetch : fetches) {
    search.visit(static_cast<std::uint32_t>(graph.find(fetch)));
  }
  const std::size_t reached = search.order().size();
  for (std::uint32_t node = 0; node < graph.nodes().size(); ++node) search.visit(node);
  std::vector<std::uint32_t> order = search.order();
  if (!fetches.empty()) order.resize(reached);
  return order;
}

/// By node; of those that are not executed 0.
std::vector<std::uint32_t> depths_of(const Graph& graph, std::span<const std::uint32_t> order) {
  std::vector<std::uint32_t> depths(graph.nodes().size(), 0);
  for (const std::uint32_t node : order) {
    for (const std::uint32_t need : graph.needs(node)) {
      depths[node] = std::max(depths[node], depths[need] + 1);
    }
  }
  return depths;
}

std::uint64_t bytes_of(const GraphNode& node) {
  return std::accumulate(node.shape.begin(), node.shape.end(), std::uint64_t{size_of(node.type)},
                         [](std::uint64_t bytes, std::uint64_t extent) { return bytes * extent; });
}

/// Pass 3. Buffers are counted from 1, so that 0 is before all of them.
class Packing {
 public:
  Packing(const Graph& graph, std::span<const std::uint32_t> depths, std::uint64_t fusion_bytes)
      : graph_(graph),
        depths_(depths),
        fusion_bytes_(fusion_bytes),
        after_(graph.nodes().size(), 0),
        buffer_(graph.nodes().size(), 0) {}

  void add(std::uint32_t node) {
    for (const std::uint32_t need : graph_.needs(node)) {
      after_[node] = std::max({after_[node], after_[need], buffer_[need]});
    }
    const GraphNode& what = graph_.nodes()[node];
    if (!what.collective) return;
    buffer_[node] = buffer_for(what, after_[node]);
    plan_.buffers[buffer_[node] - 1].push_back(
        {what.name, what.type, what.reduction, what.shape, depths_[node]});
  }

  TransferPlan take() { return std::move(plan_); }

 private:
  struct Youngest {
    std::uint32_t buffer = 0;
    std::uint64_t bytes = 0;
  };

  std::uint32_t buffer_for(const GraphNode& what, std::uint32_t after) {
    Youngest& youngest =
        youngest_[static_cast<std::size_t>(what.type)][static_cast<std::size_t>(what.reduction)];
    const std::uint64_t bytes = bytes_of(what);
    const bool joins = fusion_bytes_ != 0 && youngest.buffer > after && bytes <= fusion_bytes_ &&
                       youngest.bytes <= fusion_bytes_ - bytes;
    if (!joins) {
      plan_.buffers.emplace_back();
      youngest = {static_cast<std::uint32_t>(plan_.buffers.size()), 0};
    }
    youngest.bytes += bytes;
    return youngest.buffer;
  }

  const Graph& graph_;
  std::span<const std::uint32_t> depths_;
  std::uint64_t fusion_bytes_;
  std::vector<std::uint32_t> after_;
  std::vector<std::uint32_t> buffer_;
  std::array<std::array<Youngest, 4>, 6> youngest_{};  ///< by type and reduction
  TransferPlan plan_;
};

/// A buffer moves when all of its tensors are there. Many short ones overlap best with what
/// computes the next tensors, but each costs ranks a meeting. A tensor that is longer than an
/// eighth of all moves alone: only what is left counts, or the tensors behind one giant would all
/// wait in the last buffer, for the last of them.
std::uint64_t choose_fusion(const Graph& graph, std::span<const std::uint32_t> order) {
  constexpr std::uint64_t kBuffers = 8;
  constexpr std::uint64_t kLeast = std::uint64_t{256} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  const auto bytes_up_to = [&](std::uint64_t longest) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t node : order) {
      const GraphNode& what = graph.nodes()[node];
      if (what.collective && bytes_of(what) <= longest) bytes += bytes_of(what);
    }
    return bytes;
  };
  const std::uint64_t alone = bytes_up_to(UINT64_MAX) / kBuffers;
  return std::clamp(bytes_up_to(alone) / kBuffers, kLeast, kMost);
}

std::uint64_t digest_of_plan(const TransferPlan& plan) {
  std::uint64_t digest = plan.buffers.size();
  for (const auto& buffer : plan.buffers) {
    digest = mix_key({digest, buffer.size()});
    for (const PlannedTensor& tensor : buffer) {
      digest = digest_of(mix_key({digest, digest_of(tensor.name)}), tensor.type, tensor.reduction,
                         tensor.shape);
    }
  }
  return digest;
}

}  // namespace

TransferPlan plan_transfers(const Graph& graph, std::span<const std::string> fetches,
                            std::optional<std::uint64_t> fusion_bytes) {
  std::vector<std::uint32_t> order = nodes_to_execute(graph, fetches);
  const std::vector<std::uint32_t> depths = depths_of(graph, order);
  // Depth grows along every edge, so that this is an order of dependencies, too.
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(depths[a], a) < std::pair(depths[b], b);
  });
  Packing packing(graph, depths, fusion_bytes ? *fusion_bytes : choose_fusion(graph, order));
  for (const std::uint32_t node : order) packing.add(node);
  TransferPlan plan = packing.take();
  plan.digest = digest_of_plan(plan);
  return plan;
}

}  // namespace forebay
