// Plans of transfers over real MPI: followed without a message, left together, taken up again.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "forebay/sync.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

const std::vector<std::string> kNames{"a", "bb", "ccc", "dddd", "eeeee"};

SyncOptions options() {
  SyncOptions options;
  options.cycle = std::chrono::microseconds(500);
  options.fusion_bytes = 30'000;
  return options;
}

void step(SyncEngine& engine, const std::vector<std::string>& names, std::uint64_t number) {
  const auto world = test::world();
  std::vector<test::OneSum> sums;
  for (const auto& name : names) {
    sums.push_back({.tensor = {.name = name, .shape = {name.size() * 1000}}});
  }
  for (auto& sum : sums) sum.start(engine, world->rank(), number);
  engine.end_step();
  for (auto& sum : sums) {
    ASSERT_TRUE(sum.handle.wait_for(milliseconds(60'000))) << sum.tensor.name;
    sum.expect(number, world->size(), world->size());
  }
}

void wait_for_plans(SyncEngine& engine, std::uint64_t plans) {
  for (int i = 0; i < 5000 && engine.statistics().plans < plans; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  ASSERT_EQ(engine.statistics().plans, plans);
  test::world()->barrier();
}

TEST(MpiTopo, FollowsTheFirstStepWithoutAMessage) {
  SyncEngine engine(test::world(), options());
  step(engine, kNames, 0);
  wait_for_plans(engine, 1);
  const auto before = engine.statistics();
  for (std::uint64_t i = 1; i < 10; ++i) step(engine, kNames, i);
  EXPECT_EQ(engine.statistics().negotiations, before.negotiations);
  EXPECT_EQ(engine.statistics().fallbacks, 0U);
  test::world()->barrier();  // who closes leaves the plan
}

TEST(MpiTopo, LeavesAPlanThatDoesNotFitAndMakesAnother) {
  SyncEngine engine(test::world(), options());
  step(engine, kNames, 0);
  wait_for_plans(engine, 1);
  const std::vector<std::string> fewer(kNames.begin() + 1, kNames.end());
  for (std::uint64_t i = 1; i < 4; ++i) step(engine, fewer, i);
  wait_for_plans(engine, 2);
  const auto before = engine.statistics();
  EXPECT_EQ(before.fallbacks, 1U);
  for (std::uint64_t i = 4; i < 8; ++i) step(engine, fewer, i);
  EXPECT_EQ(engine.statistics().negotiations, before.negotiations);
  test::world()->barrier();
}

TEST(MpiTopo, FollowsAGraphAndJoins) {
  SyncEngine engine(test::world(), options());
  Graph graph;
  for (const auto& name : kNames) {
    graph.add({.name = name, .collective = true, .shape = {name.size() * 1000}});
  }
  engine.use_graph(graph, {});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t i = 0; i < 3; ++i) step(engine, kNames, i);
    if (test::world()->rank() == 0) {
      test::OneSum alone{.tensor = {.name = "a", .shape = {1000}}};
      alone.start(engine, 0, 7);
      alone.expect(7, 1, test::world()->size());
    }
    EXPECT_TRUE(engine.join().wait_for(milliseconds(60'000)));
  }
  EXPECT_EQ(engine.statistics().plans, 1U);
  test::world()->barrier();
}

}  // namespace
}  // namespace forebay
