// Graphs, their files, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "forebay/error.hpp"
#include "forebay/graph.hpp"

namespace forebay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& step, ErrorKind kind) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

std::string refused_file(const std::string& json) {
  return refusal_of([&] { parse_graph(json); }, ErrorKind::corrupt);
}

Graph chain_of(std::initializer_list<const char*> names) {
  Graph graph;
  for (const char* name : names) {
    const std::size_t node = graph.add({.name = name});
    if (node > 0) graph.connect(node - 1, node);
  }
  return graph;
}

TEST(Graph, FindsItsNodesAndWhatTheyNeed) {
  Graph graph = chain_of({"a", "b", "c"});
  graph.connect("a", "c");
  EXPECT_EQ(graph.find("c"), 2U);
  EXPECT_THAT(graph.needs(2), testing::ElementsAre(1, 0));
  EXPECT_EQ(graph.edges(), 3U);
}

TEST(Graph, RefusesNodesThatCannotBeToldApart) {
  Graph graph = chain_of({"a"});
  EXPECT_THAT(refusal_of([&] { graph.add({.name = "a"}); }, ErrorKind::usage),
              HasSubstr("two nodes are named 'a'"));
  EXPECT_THAT(refusal_of([&] { graph.add({}); }, ErrorKind::usage), HasSubstr("without a name"));
}

TEST(Graph, RefusesDanglingEdges) {
  Graph graph = chain_of({"a", "b"});
  EXPECT_THAT(refusal_of([&] { graph.connect("a", "x"); }, ErrorKind::usage),
              HasSubstr("no node is named 'x'"));
  EXPECT_THAT(refusal_of([&] { graph.connect(0, 2); }, ErrorKind::usage), HasSubstr("node 2 of 2"));
  EXPECT_EQ(graph.edges(), 1U);
}

TEST(Graph, RefusesTensorsWhoseSizeWrapsAround) {
  Graph graph;
  const std::uint64_t half = std::uint64_t{1} << 32;
  EXPECT_THAT(refusal_of(
                  [&] {
                    graph.add({.name = "a", .collective = true, .shape = {half, half, half}});
                  },
                  ErrorKind::usage),
              HasSubstr("more than 2^48 bytes"));
  EXPECT_TRUE(graph.nodes().empty());
}

TEST(Graph, DigestsDifferWhereGraphsDo) {
  const Graph graph = chain_of({"a", "b", "c"});
  Graph other = chain_of({"a", "b"});
  other.add({.name = "c"});
  other.connect(0, 2);
  EXPECT_EQ(digests(graph)[1], digests(other)[1]);
  EXPECT_NE(digests(graph)[2], digests(other)[2]);
  const auto of_shape = [](std::vector<std::uint64_t> shape) {
    Graph one;
    one.add({.name = "a", .collective = true, .shape = std::move(shape)});
    return digests(one)[0];
  };
  EXPECT_NE(of_shape({2, 3}), of_shape({3, 2}));
  EXPECT_NE(of_shape({}), of_shape({1}));
}

constexpr char kFile[] =
    R"({"nodes": [{"name": "conv", "op": "whatever"},
                  {"name": "sum", "collective": {"type": "bfloat16", "shape": [2, 3]}},
                  {"name": "most", "collective": {"type": "int32", "shape": [],
                                                  "reduction": "max"}}],
        "edges": [["conv", "sum"], ["sum", "most"]],
        "fetches": ["most"]})";

TEST(GraphFile, SaysWhatIsTransferredAndWhatIsFetched) {
  const GraphFile file = parse_graph(kFile);
  ASSERT_EQ(file.graph.nodes().size(), 3U);
  EXPECT_FALSE(file.graph.nodes()[0].collective);
  const GraphNode sum{"sum", true, TensorType::bfloat16, Reduction::sum, {2, 3}};
  const GraphNode most{"most", true, TensorType::int32, Reduction::max, {}};
  EXPECT_EQ(file.graph.nodes()[1], sum);
  EXPECT_EQ(file.graph.nodes()[2], most);
  EXPECT_THAT(file.graph.needs(2), testing::ElementsAre(1));
  EXPECT_THAT(file.fetches, testing::ElementsAre("most"));
}

TEST(GraphFile, ReadsWhatItWrites) {
  const GraphFile file = parse_graph(kFile);
  const GraphFile again = parse_graph(to_json(file));
  EXPECT_EQ(digests(file.graph), digests(again.graph));
  EXPECT_EQ(file.fetches, again.fetches);
}

TEST(GraphFile, RefusalsSayWhatIsWrongAndWhere) {
  EXPECT_THAT(refused_file("{\"nodes\": [}"), AllOf(HasSubstr("not JSON"), HasSubstr("offset 11")));
  EXPECT_THAT(refused_file("[]"), HasSubstr("no object"));
  EXPECT_THAT(refused_file("{}"), HasSubstr("'nodes' is no list"));
  EXPECT_THAT(refused_file(R"({"nodes":[{"name":"a"},{"name":7}]})"),
              HasSubstr("node 1: its name is no text"));
  EXPECT_THAT(refused_file(R"({"nodes":[{"name":"a"},{"name":"a"}]})"),
              HasSubstr("node 1: two nodes are named 'a'"));
  EXPECT_THAT(refused_file(R"({"nodes":[{"name":"a"}],"edges":[["a","b"]]})"),
              HasSubstr("edge 0: no node is named 'b'"));
  EXPECT_THAT(refused_file(R"({"nodes":[{"name":"a"}],"edges":[["a"]]})"),
              HasSubstr("edge 0: is not [\"from\", \"to\"]"));
  EXPECT_THAT(refused_file(R"({"nodes":[{"name":"a"}],"fetches":["b"]})"),
              HasSubstr("fetch 0: no node is named 'b'"));
}

TEST(GraphFile, RefusesTransfersThatAreNone) {
  const auto with = [](const std::string& collective) {
    return refused_file(R"({"nodes":[{"name":"a","collective":)" + collective + "}]}");
  };
  EXPECT_THAT(with("7"), HasSubstr("node 0: its collective is no object"));
  EXPECT_THAT(with("{}"), HasSubstr("no type"));
  EXPECT_THAT(with(R"({"type":"float8","shape":[]})"), HasSubstr("'float8'"));
  EXPECT_THAT(with(R"({"type":"int32"})"), HasSubstr("'shape' is no list"));
  EXPECT_THAT(with(R"({"type":"int32","shape":[-1]})"), HasSubstr("no count"));
  EXPECT_THAT(with(R"({"type":"int32","shape":[1.5]})"), HasSubstr("no count"));
  EXPECT_THAT(with(R"({"type":"int32","shape":[18446744073709551615,18446744073709551615]})"),
              HasSubstr("more than 2^48"));
  EXPECT_THAT(with(R"({"type":"int32","shape":[],"reduction":"xor"})"), HasSubstr("'xor'"));
}

TEST(GraphFile, RefusesDeepBracketsWithoutFollowingThem) {
  EXPECT_THAT(refused_file(std::string(1'000'000, '[')), HasSubstr("nested"));
  EXPECT_THAT(refused_file("{\"nodes\":[],\"x\":1e9999}"), HasSubstr("too large"));
}

}  // namespace
}  // namespace forebay
