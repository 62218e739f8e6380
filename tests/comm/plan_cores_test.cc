#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "core/placement.hpp"
#include "core/topology.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/placement.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

TEST(PlanCores, RanksOfOneProcessDivideItsCores) {
  const Topology topology;
  const auto cores = topology.cores(topology.available());
  const auto ranks = static_cast<int>(cores.size());
  std::mutex mutex;
  std::set<std::string> plans;
  run_ranks(ranks, 0, [&](const std::shared_ptr<Communicator>& comm) {
    const CorePlan plan = plan_cores(*comm, "partition");
    const std::lock_guard lock(mutex);
    plans.insert(plan.to_text());
    EXPECT_THAT(plan.explain(), HasSubstr(" of " + std::to_string(ranks)));
  });
  EXPECT_EQ(static_cast<int>(plans.size()), ranks);
}

TEST(PlanCores, SaysWithHowManyRanksACoreIsShared) {
  const Topology topology;
  const auto cores = static_cast<int>(topology.cores(topology.available()).size());
  const int ranks = 2 * cores + 1;
  run_ranks(ranks, 0, [&](const std::shared_ptr<Communicator>& comm) {
    const CorePlan plan = plan_cores(*comm, "partition");
    const char* const sharing = comm->rank() % cores == 0 ? "3 of them" : "2 of them";
    EXPECT_THAT(plan.explain(), HasSubstr(sharing));
    for (const auto component : {Component::compute, Component::decode, Component::io}) {
      EXPECT_TRUE(std::ranges::equal(plan.of(component), plan.of(Component::progress)));
    }
  });
}

// Virtual nodes are still on one machine.
TEST(PlanCores, VirtualNodesShareTheMachine) {
  run_ranks(4, 2, [&](const std::shared_ptr<Communicator>& comm) {
    EXPECT_THAT(plan_cores(*comm, "partition").explain(), HasSubstr(" of 4"));
  });
}

TEST(PlanCores, WhatWasDecidedReadsBack) {
  run_ranks(3, 0, [](const std::shared_ptr<Communicator>& comm) {
    for (const char* policy : {"shared", "partition", "progress:0"}) {
      const CorePlan plan = plan_cores(*comm, policy);
      EXPECT_EQ(CorePlan::parse(plan.to_text()), plan);
      EXPECT_EQ(plan_cores(*comm, plan.to_text()), plan);
    }
  });
}

TEST(PlanCores, ABadPolicyIsTheErrorOfAllRanks) {
  EXPECT_THROW(
      run_ranks(2, 0,
                [](const std::shared_ptr<Communicator>& comm) { plan_cores(*comm, "everywhere"); }),
      Error);
}

}  // namespace
}  // namespace forebay
