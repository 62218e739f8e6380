#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "forebay/error.hpp"
#include "nets/training_step.hpp"

namespace forebay::nets {
namespace {

/// What is known of each network: parameters, parameter tensors, and 10^6 multiply-adds of
/// convolutions and fully connected layers for one image.
struct Known {
  const char* name;
  std::uint64_t parameters;
  std::uint64_t tensors;
  double millions;
};

constexpr Known kKnown[] = {
    {"resnet18", 11'689'512, 62, 1814},    {"resnet34", 21'797'672, 110, 3664},
    {"resnet50", 25'557'032, 161, 4089},   {"resnet101", 44'549'160, 314, 7801},
    {"resnet152", 60'192'808, 467, 11514}, {"alexnet", 61'100'840, 16, 714},
    {"googlenet", 6'624'904, 173, 1498},   {"inception3", 23'834'568, 284, 5713},
    {"vgg16", 138'357'544, 32, 15470}};

TEST(Nets, HaveTheParametersThatTheyAreKnownFor) {
  ASSERT_EQ(net_names().size(), std::size(kKnown));
  for (const Known& known : kKnown) {
    const Net net = make_net(known.name);
    EXPECT_EQ(net.name, known.name);
    EXPECT_EQ(net.parameters(), known.parameters) << known.name;
    EXPECT_EQ(net.parameter_tensors(), known.tensors) << known.name;
    EXPECT_NEAR(static_cast<double>(net.multiply_adds()) * 1e-6 / known.millions, 1, 0.01)
        << known.name;
  }
}

TEST(Nets, KernelsStandBehindWhatTheyNeedAndNamesAreTheirOwn) {
  for (const std::string_view name : net_names()) {
    const Net net = make_net(name);
    std::set<std::string> names;
    for (std::size_t i = 0; i < net.kernels.size(); ++i) {
      EXPECT_TRUE(names.insert(net.kernels[i].name).second) << net.kernels[i].name;
      for (const std::size_t needed : net.kernels[i].needs) EXPECT_LT(needed, i);
      EXPECT_TRUE(i == 0 || !net.kernels[i].needs.empty()) << net.kernels[i].name;
    }
  }
}

TEST(Nets, AnUnknownNameIsAnErrorThatListsTheOthers) {
  try {
    make_net("lenet");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("googlenet"));
  }
}

TEST(TrainingStep, EveryTensorIsSummedOnceBetweenItsGradientAndItsUpdate) {
  for (const std::string_view name : net_names()) {
    const Net net = make_net(name);
    const TrainingStep step = make_step(net, 32, {});
    ASSERT_EQ(step.tensors.size(), net.parameter_tensors());
    std::map<OperationKind, std::vector<std::size_t>> tensors;
    for (std::size_t i = 0; i < step.operations.size(); ++i) {
      const Operation& operation = step.operations[i];
      tensors[operation.kind].push_back(operation.tensor);
      for (const std::size_t needed : operation.needs) EXPECT_LT(needed, i);
      if (operation.kind == OperationKind::allreduce) {
        EXPECT_EQ(operation.name, step.tensors[operation.tensor].name);
      }
    }
    for (const OperationKind kind :
         {OperationKind::gradient, OperationKind::allreduce, OperationKind::update}) {
      ASSERT_EQ(tensors[kind].size(), step.tensors.size());
      for (std::size_t i = 0; i < step.tensors.size(); ++i) EXPECT_EQ(tensors[kind][i], i);
    }
  }
}

TEST(TrainingStep, TakesAboutThreeTimesTheForwardPass) {
  const TrainingStep step = make_step(make_net("resnet50"), 32, {});
  const double seconds = std::chrono::duration<double>(step.device_time()).count();
  EXPECT_NEAR(32 / seconds, 800, 150);
  const TrainingStep slower = make_step(make_net("resnet50"), 32, {.scale = 4});
  EXPECT_NEAR(std::chrono::duration<double>(slower.device_time()).count() / seconds, 4, 0.001);
}

TEST(TrainingStep, ItsGraphPlansIntoTransfersOfAllTensors) {
  for (const std::string_view name : net_names()) {
    const TrainingStep step = make_step(make_net(name), 32, {});
    const GraphFile file = graph_of(step);
    EXPECT_EQ(file.graph.nodes().size(), step.operations.size());
    const TransferPlan plan = plan_transfers(file.graph, file.fetches, std::uint64_t{64} << 20);
    std::multiset<std::string> planned;
    std::multiset<std::string> expected;
    for (const auto& buffer : plan.buffers) {
      for (const PlannedTensor& tensor : buffer) planned.insert(tensor.name);
    }
    for (const Parameter& tensor : step.tensors) expected.insert(tensor.name);
    EXPECT_EQ(planned, expected) << name;
  }
}

}  // namespace
}  // namespace forebay::nets
