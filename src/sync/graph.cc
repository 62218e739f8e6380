#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/mix.hpp"
#include "core/names.hpp"
#include "forebay/error.hpp"
#include "forebay/graph.hpp"
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

// Graphs as JSON. The text is not trusted: nesting is bounded while it is parsed, memory by the
// length of the text, and every name and number is checked before it becomes part of the graph.

namespace {

using Json = nlohmann::json;

constexpr char kRemedy[] = "correct the graph file, or write it anew";
/// A shape is the deepest thing: {"nodes":[{"collective":{"shape":[..]}}]}.
constexpr int kDeepest = 16;
constexpr std::size_t kMostExtents = 64;

constexpr Name<Reduction> kReductions[] = {{"sum", Reduction::sum},
                                           {"mean", Reduction::mean},
                                           {"min", Reduction::min},
                                           {"max", Reduction::max}};

[[noreturn]] void refuse(const std::string& happened) {
  throw Error(ErrorKind::corrupt, "graph: " + happened, kRemedy);
}

Json parse_bounded(std::string_view text) {
  const auto bounded = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) refuse(fmt::format("brackets are nested more than {} deep", kDeepest));
    return true;
  };
  try {
    return Json::parse(text, bounded);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::corrupt, "graph: the text is not JSON", kRemedy,
                {.offset = error.byte == 0 ? 0 : error.byte - 1});
  } catch (const Json::out_of_range&) {
    refuse("the text holds a number that is too large");
  }
}

/// What is wrong with one node, edge or fetch, with its place in the file.
template <typename Read>
void at_place(const char* what, std::size_t number, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    std::string_view happened = error.happened();
    constexpr std::string_view kPrefix = "graph: ";
    if (happened.starts_with(kPrefix)) happened.remove_prefix(kPrefix.size());
    refuse(fmt::format("{} {}: {}", what, number, happened));
  }
}

/// The array of that name; an empty one where it may be missing.
const Json& array_of(const Json& object, const char* name, bool required) {
  static const Json none = Json::array();
  const auto found = object.find(name);
  if (found == object.end() && !required) return none;
  if (found == object.end() || !found->is_array()) refuse(fmt::format("'{}' is no list", name));
  return *found;
}

const std::string& text_of(const Json& value, const char* what) {
  if (!value.is_string()) refuse(fmt::format("its {} is no text", what));
  return value.get_ref<const std::string&>();
}

void read_collective(const Json& value, GraphNode& node) {
  if (!value.is_object()) refuse("its collective is no object");
  node.collective = true;
  if (!value.contains("type")) refuse("its collective has no type");
  node.type = parse_tensor_type(text_of(value["type"], "type"));
  if (const auto reduction = value.find("reduction"); reduction != value.end()) {
    node.reduction = parse_name("reduction", text_of(*reduction, "reduction"), kReductions);
  }
  const Json& shape = array_of(value, "shape", true);
  if (shape.size() > kMostExtents) refuse(fmt::format("a shape of {} extents", shape.size()));
  for (const Json& extent : shape) {
    // Signed or fractional numbers must not turn into huge unsigned ones.
    if (!extent.is_number_unsigned()) refuse("an extent of its shape is no count");
    node.shape.push_back(extent.get<std::uint64_t>());
  }
}

void read_node(const Json& value, Graph& graph) {
  if (!value.is_object()) refuse("is no object");
  if (!value.contains("name")) refuse("has no name");
  GraphNode node;
  node.name = text_of(value["name"], "name");
  if (const auto collective = value.find("collective"); collective != value.end()) {
    read_collective(*collective, node);
  }
  graph.add(std::move(node));
}

void read_edge(const Json& value, Graph& graph) {
  if (!value.is_array() || value.size() != 2) refuse("is not [\"from\", \"to\"]");
  graph.connect(text_of(value[0], "start"), text_of(value[1], "end"));
}

Json json_of(const GraphNode& node) {
  Json value{{"name", node.name}};
  if (node.collective) {
    value["collective"] = {{"type", to_string(node.type)},
                           {"shape", node.shape},
                           {"reduction", name_of(node.reduction, kReductions)}};
  }
  return value;
}

}  // namespace

GraphFile parse_graph(std::string_view json) {
  const Json root = parse_bounded(json);
  if (!root.is_object()) refuse("the text is no object");
  GraphFile file;
  std::size_t number = 0;
  for (const Json& node : array_of(root, "nodes", true)) {
    at_place("node", number++, [&] { read_node(node, file.graph); });
  }
  number = 0;
  for (const Json& edge : array_of(root, "edges", false)) {
    at_place("edge", number++, [&] { read_edge(edge, file.graph); });
  }
  number = 0;
  for (const Json& fetch : array_of(root, "fetches", false)) {
    at_place("fetch", number++, [&] {
      file.fetches.push_back(text_of(fetch, "name"));
      file.graph.find(file.fetches.back());
    });
  }
  return file;
}

std::string to_json(const GraphFile& file) {
  const Graph& graph = file.graph;
  Json root{{"nodes", Json::array()}, {"edges", Json::array()}, {"fetches", file.fetches}};
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    root["nodes"].push_back(json_of(graph.nodes()[i]));
    for (const std::uint32_t need : graph.needs(i)) {
      root["edges"].push_back({graph.nodes()[need].name, graph.nodes()[i].name});
    }
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace forebay
