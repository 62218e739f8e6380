// Any bytes as a graph file: it is refused with an Error, or planned; what was read is written and
// read again; and a plan holds every transfer once, whatever a transfer needs in earlier buffers.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "forebay/error.hpp"
#include "forebay/graph.hpp"

namespace {

using namespace forebay;

constexpr std::uint64_t kFusionBytes = 4096;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_plan(const Graph& graph, const TransferPlan& plan) {
  std::map<std::size_t, std::size_t> buffers;  // by node
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    require(!plan.buffers[i].empty());
    for (const PlannedTensor& tensor : plan.buffers[i]) {
      const std::size_t node = graph.find(tensor.name);
      require(graph.nodes()[node].collective && buffers.emplace(node, i).second);
    }
  }
  for (const auto& [node, buffer] : buffers) {
    for (const std::uint32_t need : graph.needs(node)) {
      const auto needed = buffers.find(need);
      require(needed == buffers.end() || needed->second < buffer);
    }
  }
}

void plan(const GraphFile& file) {
  try {
    check_plan(file.graph, plan_transfers(file.graph, file.fetches, kFusionBytes));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage);  // a circle
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  GraphFile file;
  try {
    file = parse_graph(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt);
    return 0;
  }
  plan(file);
  const GraphFile again = parse_graph(to_json(file));
  require(digests(again.graph) == digests(file.graph) && again.fetches == file.fetches);
  return 0;
}
