#include "train/network_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/trainer/quadrants.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const std::vector<PlannedTensor>& buffer) {
  std::vector<std::string> names;
  for (const PlannedTensor& tensor : buffer) names.push_back(tensor.name);
  return names;
}

TEST(NetworkGraph, TransfersFollowTheBackwardPass) {
  Quadrants network;
  const std::vector<TensorSpec> tail{tail_of(network)};
  const GraphFile graph = graph_of(network, tail);
  const TransferPlan plan = plan_transfers(graph.graph, graph.fetches, 0);
  ASSERT_EQ(plan.buffers.size(), 3U);
  EXPECT_THAT(names(plan.buffers[0]), ElementsAre("lower"));
  EXPECT_THAT(names(plan.buffers[1]), ElementsAre("upper"));
  EXPECT_THAT(names(plan.buffers[2]), ElementsAre(kTailName));
}

TEST(NetworkGraph, NoTransferNeedsAnother) {
  Quadrants network;
  const std::vector<TensorSpec> tail{tail_of(network)};
  const GraphFile graph = graph_of(network, tail);
  EXPECT_EQ(plan_transfers(graph.graph, graph.fetches, 1 << 20).buffers.size(), 1U);
}

TEST(NetworkGraph, HoldsTheNumbersOfTheNetwork) {
  Quadrants network;
  const GraphFile graph = graph_of(network, {});
  EXPECT_THAT(graph.fetches, ElementsAre("update lower", "update upper"));
  EXPECT_EQ(graph.graph.nodes()[graph.graph.find("upper")].shape, std::vector<std::uint64_t>{2});
  EXPECT_EQ(tail_of(network).shape, std::vector<std::uint64_t>{3});
}

}  // namespace
}  // namespace forebay
