#include "train/network_graph.hpp"

#include <optional>
#include <utility>

namespace forebay {
namespace {

/// Adds `node`, which needs `from`.
std::size_t add_after(Graph& graph, std::optional<std::size_t> from, GraphNode node) {
  const std::size_t added = graph.add(std::move(node));
  if (from) graph.connect(*from, added);
  return added;
}

GraphNode transfer_of(const TensorSpec& tensor) {
  return {.name = tensor.name,
          .collective = true,
          .type = tensor.type,
          .reduction = Reduction::sum,
          .shape = tensor.shape};
}

}  // namespace

std::vector<TensorSpec> tensors_of(const Network& network) {
  std::vector<TensorSpec> tensors;
  for (const Part& part : network.parts()) {
    tensors.push_back({.name = part.name, .type = TensorType::float32, .shape = part.shape});
  }
  return tensors;
}

TensorSpec tail_of(Network& network) {
  return {.name = kTailName, .type = TensorType::float32, .shape = {network.tail().size()}};
}

GraphFile graph_of(const Network& network, std::span<const TensorSpec> behind) {
  const std::vector<TensorSpec> tensors = tensors_of(network);
  GraphFile result;
  Graph& graph = result.graph;
  const auto add_sum = [&](std::optional<std::size_t> after, const TensorSpec& tensor) {
    const std::size_t sum = add_after(graph, after, transfer_of(tensor));
    result.fetches.push_back("update " + tensor.name);
    add_after(graph, sum, {.name = result.fetches.back()});
  };
  std::optional<std::size_t> last;
  for (const TensorSpec& tensor : tensors) {
    last = add_after(graph, last, {.name = "forward " + tensor.name});
  }
  for (std::size_t part = tensors.size(); part-- > 0;) {
    last = add_after(graph, last, {.name = "backward " + tensors[part].name});
    add_sum(last, tensors[part]);
  }
  for (const TensorSpec& tensor : behind) add_sum(last, tensor);
  return result;
}

}  // namespace forebay
