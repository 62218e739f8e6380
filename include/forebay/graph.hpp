// A graph of operations, and the order and grouping of the transfers in it that every rank can
// work out for itself (paper 002 6.3.4).
//
//   conv -> bn -> loss -> d_bn -> allreduce(bn) -> update        edges lead from what is needed
//                          \-> d_conv -> allreduce(conv)         to what needs it
//
// Every transfer gets a number: a reverse depth-first search from the fetches numbers parents
// before children, siblings as they were inserted, all others by their depth. In that order
// transfers are packed into fused buffers: only such that do not depend on each other, of one type
// and reduction, up to a number of bytes. No rank can then wait for a transfer that itself waits
// for a later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/tensor.hpp"

namespace forebay {

struct GraphNode {
  std::string name;
  bool collective = false;  ///< an allreduce: the fields below say of what
  TensorType type = TensorType::float32;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint64_t> shape;
};

/// Value type. Node numbers are their order of insertion.
class Graph {
 public:
  /// Returns its number. Throws usage for a name that is there already or is empty.
  std::size_t add(GraphNode node);
  /// `to` needs what `from` makes. Throws usage for nodes that do not exist.
  void connect(std::size_t from, std::size_t to);
  void connect(std::string_view from, std::string_view to);

  std::span<const GraphNode> nodes() const;
  std::span<const std::uint32_t> needs(std::size_t node) const;  ///< as they were connected
  std::size_t edges() const;
  /// The node of that name. Throws usage.
  std::size_t find(std::string_view name) const;

 private:
  std::vector<GraphNode> nodes_;
};

/// Reads {"nodes":[{"name":..,"collective":{"type":"float32","shape":[..],"reduction":"sum"}}],
/// "edges":[["from","to"],..],"fetches":[..]}. Throws corrupt (with what is wrong and where).
struct GraphFile {
  Graph graph;
  std::vector<std::string> fetches;
};
GraphFile parse_graph(std::string_view json);
std::string to_json(const GraphFile& file);

/// One transfer of a plan.
struct PlannedTensor {
  std::string name;
  TensorType type = TensorType::float32;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint64_t> shape;
  std::uint32_t depth = 0;  ///< edges on the longest way from a root
  auto operator<=>(const PlannedTensor&) const = default;
};

/// Transfers in the order of their numbers, in buffers of one or more of them.
struct TransferPlan {
  std::vector<std::vector<PlannedTensor>> buffers;
  std::uint64_t digest = 0;  ///< equal plans, and hardly any others, have equal ones
};

/// Throws usage: a cycle (naming its nodes), a fetch that does not exist. O(V + E) but for the
/// check of dependencies, which looks only at transfers that could share a buffer.
TransferPlan plan_transfers(const Graph& graph, std::span<const std::string> fetches,
                            std::uint64_t fusion_bytes);

}  // namespace forebay
