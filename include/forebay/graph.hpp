// A graph of operations, and the order and grouping of the transfers in it that every rank can
// work out for itself (paper 002 6.3.4).
//
//   conv -> bn -> loss -> d_bn -> allreduce(bn) -> update        edges lead from what is needed
//                          \-> d_conv -> allreduce(conv)         to what needs it
//
// Every transfer gets a number: a reverse depth-first search from the fetches finds the nodes to be
// executed and their depths; numbers grow with the depth, so that parents come before children, and
// at one depth with the order of insertion, so that siblings come as they were added.
// In that order transfers are packed into fused buffers: of one type and reduction, up to a number
// of bytes, and such that whatever a transfer depends on lies in an earlier buffer. Buffers that
// are transferred one after the other can then never wait for each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "forebay/tensor.hpp"

namespace forebay {

struct GraphNode {
  std::string name;
  bool collective = false;  ///< an allreduce: the fields below say of what
  TensorType type = TensorType::float32;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint64_t> shape;
  auto operator<=>(const GraphNode&) const = default;
};

/// Value type: not thread-safe while it is changed. Node numbers are their order of insertion.
class Graph {
 public:
  /// Returns its number. Throws usage for a name that is there already, is empty or longer than
  /// kLongestName, and for a tensor of more than kLargestTensor bytes.
  std::size_t add(GraphNode node);
  /// `to` needs what `from` makes. Throws usage for nodes that do not exist. Circles are found when
  /// the graph is planned.
  void connect(std::size_t from, std::size_t to);
  void connect(std::string_view from, std::string_view to);

  std::span<const GraphNode> nodes() const;
  std::span<const std::uint32_t> needs(std::size_t node) const;  ///< as they were connected
  std::size_t edges() const;
  /// The node of that name. Throws usage.
  std::size_t find(std::string_view name) const;

  static constexpr std::size_t kLongestName = 4096;
  static constexpr std::uint64_t kLargestTensor = std::uint64_t{1} << 48;

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  void require_node(std::size_t node) const;

  std::vector<GraphNode> nodes_;
  std::vector<std::vector<std::uint32_t>> needs_;
  std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> numbers_;
  std::size_t edges_ = 0;
};

/// One number for each node: of its name, of what is transferred, and of what it needs. Equal
/// graphs, and hardly any others, have equal ones.
std::vector<std::uint64_t> digests(const Graph& graph);

/// A graph as a file tells it:
///
///   {"nodes":   [{"name": "conv1"},
///                {"name": "allreduce(conv1)",
///                 "collective": {"type": "float32", "shape": [64, 3, 7, 7], "reduction": "sum"}}],
///    "edges":   [["conv1", "allreduce(conv1)"]],
///    "fetches": ["allreduce(conv1)"]}
///
/// "reduction" is sum where it is not given; "edges" and "fetches" may be missing (no fetches: the
/// whole graph). Other fields are not looked at.
struct GraphFile {
  Graph graph;
  std::vector<std::string> fetches;
};
/// Throws corrupt: no JSON (with the offset), nodes, edges or fetches that are none (which one),
/// names that come twice or that no node has. Circles are found when the graph is planned.
GraphFile parse_graph(std::string_view json);
std::string to_json(const GraphFile& file);

/// One transfer of a plan.
struct PlannedTensor {
  std::string name;
  TensorType type = TensorType::float32;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint64_t> shape;
  std::uint32_t depth = 0;  ///< edges on the longest way from a node that needs nothing
  auto operator<=>(const PlannedTensor&) const = default;
};

/// Transfers in the order of their numbers, in buffers of one or more of them.
struct TransferPlan {
  std::vector<std::vector<PlannedTensor>> buffers;
  std::uint64_t digest = 0;  ///< equal plans, and hardly any others, have equal ones
};

/// Plans the transfers that `fetches` need, or all of the graph where there are none. A tensor
/// larger than `fusion_bytes` has a buffer of its own; 0: every tensor has; none given: an eighth
/// of all bytes, without tensors longer than that, within 256 KiB and 64 MiB: the first move early.
/// Throws usage: a circle anywhere in the graph (naming its nodes), a fetch that does not exist.
/// Takes O(V + E) and a sort of the transfers. Local; equal on all ranks for equal arguments.
TransferPlan plan_transfers(const Graph& graph, std::span<const std::string> fetches,
                            std::optional<std::uint64_t> fusion_bytes);

}  // namespace forebay
