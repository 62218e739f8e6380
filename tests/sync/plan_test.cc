// The order and grouping of transfers, also against reachability by brute force on random graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "forebay/error.hpp"
#include "forebay/graph.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

GraphNode allreduce(const std::string& name, std::uint64_t floats = 1) {
  return {.name = name, .collective = true, .shape = {floats}};
}

std::vector<std::vector<std::string>> names_of(const TransferPlan& plan) {
  std::vector<std::vector<std::string>> names;
  for (const auto& buffer : plan.buffers) {
    names.emplace_back();
    for (const PlannedTensor& tensor : buffer) names.back().push_back(tensor.name);
  }
  return names;
}

TEST(Plan, FollowsTheExampleOfThePaper) {
  // 002 figure 6.14: 0 and 1 are fused, 3 and 4 are, and 2 is alone, as 3 needs 2 and 2 needs 0.
  Graph graph;
  graph.add({.name = "root"});
  for (const char* name : {"0", "1", "2", "3"}) graph.add(allreduce(name));
  graph.add({.name = "a"});
  graph.add({.name = "b"});
  graph.add(allreduce("4"));
  for (const auto& [from, to] :
       std::initializer_list<std::pair<const char*, const char*>>{{"root", "0"},
                                                                  {"root", "1"},
                                                                  {"0", "2"},
                                                                  {"2", "3"},
                                                                  {"0", "a"},
                                                                  {"a", "b"},
                                                                  {"b", "4"}}) {
    graph.connect(from, to);
  }
  const TransferPlan plan = plan_transfers(graph, std::vector<std::string>{"1", "3", "4"}, 1000);
  EXPECT_THAT(names_of(plan),
              ElementsAre(ElementsAre("0", "1"), ElementsAre("2"), ElementsAre("3", "4")));
  EXPECT_EQ(plan.buffers[2][1].depth, 4U);
}

TEST(Plan, NumbersByDepthThenInsertion) {
  Graph graph;
  graph.add(allreduce("late"));
  graph.add({.name = "x"});
  graph.add(allreduce("second"));
  graph.add(allreduce("third"));
  graph.connect("x", "late");
  EXPECT_THAT(names_of(plan_transfers(graph, {}, 1000)),
              ElementsAre(ElementsAre("second", "third", "late")));
}

TEST(Plan, HoldsOnlyWhatTheFetchesNeed) {
  Graph graph;
  for (const char* name : {"a", "b", "c"}) graph.add(allreduce(name));
  graph.connect("a", "b");
  EXPECT_THAT(names_of(plan_transfers(graph, std::vector<std::string>{"b"}, 1000)),
              ElementsAre(ElementsAre("a"), ElementsAre("b")));
  EXPECT_THAT(names_of(plan_transfers(graph, std::vector<std::string>{"c", "c"}, 1000)),
              ElementsAre(ElementsAre("c")));
  EXPECT_NE(plan_transfers(graph, std::vector<std::string>{"b"}, 1000).digest,
            plan_transfers(graph, std::vector<std::string>{"c"}, 1000).digest);
}

TEST(Plan, FusesUpToTheThresholdAndLeavesLargerOnesAlone) {
  Graph graph;
  for (const auto& [name, floats] : std::initializer_list<std::pair<const char*, int>>{
           {"a", 10}, {"b", 15}, {"c", 1}, {"d", 100}, {"e", 25}}) {
    graph.add(allreduce(name, static_cast<std::uint64_t>(floats)));
  }
  EXPECT_THAT(
      names_of(plan_transfers(graph, {}, 100)),
      ElementsAre(ElementsAre("a", "b"), ElementsAre("c"), ElementsAre("d"), ElementsAre("e")));
  EXPECT_THAT(plan_transfers(graph, {}, 0).buffers, SizeIs(5));
}

TEST(Plan, FusesAnEighthWhereNoThresholdIsGiven) {
  Graph large;
  Graph small;
  for (int i = 0; i < 16; ++i) {
    large.add(allreduce("l" + std::to_string(i), std::uint64_t{1} << 18));
    small.add(allreduce("s" + std::to_string(i), 100));
  }
  const TransferPlan plan = plan_transfers(large, {}, {});
  EXPECT_THAT(plan.buffers, SizeIs(8));
  EXPECT_THAT(plan.buffers, Each(SizeIs(2)));
  EXPECT_THAT(plan_transfers(small, {}, {}).buffers, SizeIs(1));
}

TEST(Plan, GiantsDoNotMakeOthersWaitForEachOther) {
  Graph graph;
  constexpr std::uint64_t kMega = std::uint64_t{1} << 18;  // floats of 1 MiB
  graph.add(allreduce("giant", 100 * kMega));
  for (int i = 0; i < 8; ++i) graph.add(allreduce("small" + std::to_string(i), kMega));
  // An eighth of all would be 13 MiB.
  const TransferPlan plan = plan_transfers(graph, {}, {});
  EXPECT_THAT(plan.buffers, SizeIs(9));
  EXPECT_THAT(plan.buffers, Each(SizeIs(1)));
}

TEST(Plan, FusesAcrossTensorsOfOtherTypes) {
  Graph graph;
  graph.add(allreduce("a"));
  graph.add({.name = "h", .collective = true, .type = TensorType::float16, .shape = {1}});
  graph.add(allreduce("b"));
  graph.add({.name = "i", .collective = true, .type = TensorType::float16, .shape = {1}});
  graph.add({.name = "m", .collective = true, .reduction = Reduction::max, .shape = {1}});
  EXPECT_THAT(names_of(plan_transfers(graph, {}, 100)),
              ElementsAre(ElementsAre("a", "b"), ElementsAre("h", "i"), ElementsAre("m")));
}

TEST(Plan, DoesNotFuseWhatDependsThroughAnotherBuffer) {
  // b may not join a: it waits for h, whose buffer comes after a's.
  Graph graph;
  graph.add(allreduce("a"));
  graph.add({.name = "h", .collective = true, .type = TensorType::float16, .shape = {1}});
  graph.add({.name = "x"});
  graph.add(allreduce("b"));
  graph.connect("h", "x");
  graph.connect("x", "b");
  EXPECT_THAT(names_of(plan_transfers(graph, {}, 100)),
              ElementsAre(ElementsAre("a"), ElementsAre("h"), ElementsAre("b")));
}

std::string refusal(const Graph& graph, const std::vector<std::string>& fetches) {
  try {
    plan_transfers(graph, fetches, 1000);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(Plan, RefusesCirclesAndNamesThem) {
  Graph graph;
  for (const char* name : {"a", "b", "c", "far"}) graph.add({.name = name});
  graph.connect("a", "b");
  graph.connect("b", "c");
  graph.connect("c", "a");
  EXPECT_THAT(refusal(graph, {"b"}), HasSubstr("'b' needs 'a' needs 'c' needs 'b'"));
  EXPECT_THAT(refusal(graph, {"far"}), HasSubstr("a circle"));
  Graph itself;
  itself.add({.name = "a"});
  itself.connect(0, 0);
  EXPECT_THAT(refusal(itself, {}), HasSubstr("'a' needs 'a'"));
  EXPECT_THAT(refusal(itself, {"x"}), HasSubstr("no node is named 'x'"));
}

TEST(Plan, ADeepGraphNeedsNoDeepStack) {
  Graph graph;
  for (int i = 0; i < 300'000; ++i) graph.add({.name = std::to_string(i)});
  for (std::size_t i = 1; i < 300'000; ++i) graph.connect(i - 1, i);
  graph.add(allreduce("end"));
  graph.connect(299'999, 300'000);
  const TransferPlan plan = plan_transfers(graph, std::vector<std::string>{"end"}, 1000);
  ASSERT_THAT(plan.buffers, SizeIs(1));
  EXPECT_EQ(plan.buffers[0][0].depth, 300'000U);
}

/// Edges lead from lower to higher numbers of a random permutation.
Graph random_graph(std::mt19937& random) {
  Graph graph;
  const std::size_t nodes = 1 + random() % 40;
  std::vector<std::size_t> rank(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    rank[i] = i;
    GraphNode node{.name = "n" + std::to_string(i), .collective = random() % 3 != 0};
    if (node.collective) {
      node.type = random() % 4 == 0 ? TensorType::float16 : TensorType::float32;
      node.reduction = random() % 8 == 0 ? Reduction::max : Reduction::sum;
      node.shape = {random() % 30};
    }
    graph.add(std::move(node));
  }
  std::shuffle(rank.begin(), rank.end(), random);
  const std::size_t edges = random() % (nodes * 2);
  for (std::size_t i = 0; i < edges && nodes > 1; ++i) {
    const std::size_t a = random() % nodes, b = random() % nodes;
    if (rank[a] < rank[b]) graph.connect(a, b);
  }
  return graph;
}

/// reaches[a] holds b: b needs a, through however many nodes.
std::vector<std::set<std::size_t>> reachability(const Graph& graph) {
  const std::size_t nodes = graph.nodes().size();
  std::vector<std::set<std::size_t>> reaches(nodes);
  for (std::size_t changed = 1; changed != 0;) {
    changed = 0;
    for (std::size_t to = 0; to < nodes; ++to) {
      for (std::size_t from = 0; from < nodes; ++from) {
        for (const std::uint32_t need : graph.needs(to)) {
          if (need != from && !reaches[from].contains(need)) continue;
          changed += reaches[from].insert(to).second ? 1 : 0;
        }
      }
    }
  }
  return reaches;
}

class PlannedGraph {
 public:
  PlannedGraph(const Graph& graph, const TransferPlan& plan) : graph_(graph), plan_(plan) {
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      for (const PlannedTensor& tensor : plan.buffers[i]) {
        EXPECT_TRUE(buffer_.emplace(graph.find(tensor.name), i).second);
      }
    }
  }

  void expect_every_transfer_of(const std::vector<std::string>& fetches) const {
    const auto reaches = reachability(graph_);
    for (std::size_t node = 0; node < graph_.nodes().size(); ++node) {
      const bool wanted =
          graph_.nodes()[node].collective &&
          (fetches.empty() || std::any_of(fetches.begin(), fetches.end(), [&](const auto& fetch) {
             const std::size_t end = graph_.find(fetch);
             return end == node || reaches[node].contains(end);
           }));
      EXPECT_EQ(buffer_.contains(node), wanted) << graph_.nodes()[node].name;
    }
  }

  void expect_dependencies_in_earlier_buffers() const {
    const auto reaches = reachability(graph_);
    for (const auto& [from, earlier] : buffer_) {
      for (const auto& [to, later] : buffer_) {
        if (reaches[from].contains(to)) {
          EXPECT_LT(earlier, later);
        }
      }
    }
  }

  void expect_buffers_of_one_kind_within(std::uint64_t bytes) const {
    for (const auto& buffer : plan_.buffers) {
      std::uint64_t sum = 0;
      for (const PlannedTensor& tensor : buffer) {
        sum += tensor.shape[0] * size_of(tensor.type);
        EXPECT_EQ(std::tie(tensor.type, tensor.reduction),
                  std::tie(buffer[0].type, buffer[0].reduction));
      }
      if (buffer.size() > 1) {
        EXPECT_LE(sum, bytes);
      }
    }
  }

 private:
  const Graph& graph_;
  const TransferPlan& plan_;
  std::map<std::size_t, std::size_t> buffer_;  ///< by node
};

TEST(PlanProperty, RandomGraphsAreFusedOnlyAlongTheirDependencies) {
  const int rounds = test::random_cases(3000);
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    std::mt19937 random(static_cast<unsigned>(round));
    const Graph graph = random_graph(random);
    std::vector<std::string> fetches;
    for (std::size_t i = random() % 3; i > 0; --i) {
      fetches.push_back(graph.nodes()[random() % graph.nodes().size()].name);
    }
    const std::uint64_t bytes = random() % 200;
    const TransferPlan plan = plan_transfers(graph, fetches, bytes);
    const PlannedGraph planned(graph, plan);
    planned.expect_every_transfer_of(fetches);
    planned.expect_dependencies_in_earlier_buffers();
    planned.expect_buffers_of_one_kind_within(bytes);
    EXPECT_EQ(plan_transfers(graph, fetches, bytes).digest, plan.digest);
  }
}

}  // namespace
}  // namespace forebay
