// Transfers in the order of a plan: what steps show, what graphs say, and steps that do neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/sync.hpp"
#include "tests/support/log_catcher.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::OneSum;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kDeadline{30'000};

SyncOptions topo_options() {
  SyncOptions options;
  options.cycle = std::chrono::microseconds(500);
  options.fusion_bytes = 100;
  options.plan_patience = kDeadline;  // a busy machine must not look like a step that has changed
  return options;
}

/// One rank that trains: the same tensors in every step.
class Trainer {
 public:
  explicit Trainer(const std::shared_ptr<Communicator>& comm, SyncOptions options = topo_options())
      : comm_(comm), engine_(comm, std::move(options)) {}

  SyncEngine& engine() { return engine_; }

  /// Starts and checks; ranks start in different orders.
  void step(const std::vector<std::string>& names) {
    std::vector<OneSum> sums = started(names);
    engine_.end_step();
    finish(sums);
  }

  std::vector<OneSum> started(const std::vector<std::string>& names) {
    std::vector<OneSum> sums;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto turned = (i * 7 + static_cast<std::size_t>(comm_->rank())) % names.size();
      const std::string& name = names[names.size() % 7 == 0 ? i : turned];
      sums.push_back({.tensor = {.name = name, .shape = {shape_of(name)}}});
      sums.back().start(engine_, comm_->rank(), step_);
    }
    return sums;
  }

  void finish(std::vector<OneSum>& sums) {
    for (OneSum& sum : sums) {
      if (!sum.handle.wait_for(kDeadline)) {
        throw Error(ErrorKind::communication, "'" + sum.tensor.name + "' was never done");
      }
      sum.expect(step_, comm_->size(), comm_->size());
    }
    ++step_;
  }

  /// Until ranks follow a plan that is the `plans`-th.
  void step_until_planned(const std::vector<std::string>& names, std::uint64_t plans) {
    for (int i = 0; i < 4; ++i) {
      step(names);
      if (planned(plans, milliseconds(500))) return;
    }
    ADD_FAILURE() << "ranks have not come to plan " << plans << ": " << engine_.explain();
  }

  void expect_plans(std::uint64_t plans) {
    EXPECT_TRUE(planned(plans, kDeadline)) << engine_.explain();
  }

  SyncStatistics statistics() const { return engine_.statistics(); }

 private:
  static std::uint64_t shape_of(const std::string& name) { return 1 + name.size() % 5; }

  /// All ranks come to the same answer.
  bool planned(std::uint64_t plans, milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (engine_.statistics().plans < plans && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::vector<float> have{engine_.statistics().plans >= plans ? 1.0F : 0.0F};
    comm_->all_reduce_sum(have);
    return have[0] == static_cast<float>(comm_->size());
  }

  std::shared_ptr<Communicator> comm_;
  SyncEngine engine_;
  std::uint64_t step_ = 0;
};

const std::vector<std::string> kNames{"a", "bb", "ccc", "dddd", "eeeee", "ff", "g", "hhh"};

TEST(Topo, SendsNoMessageOnceTheFirstStepIsPlanned) {
  run_ranks(3, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step(kNames);
    trainer.expect_plans(1);
    const SyncStatistics before = trainer.statistics();
    for (int i = 0; i < 20; ++i) trainer.step(kNames);
    const SyncStatistics after = trainer.statistics();
    EXPECT_EQ(after.negotiations, before.negotiations);
    EXPECT_EQ(after.cycles, before.cycles);
    EXPECT_EQ(after.plans, 1U);
    EXPECT_EQ(after.fallbacks, 0U);
    EXPECT_GT(after.transfers, before.transfers);
    EXPECT_LT(after.transfers, before.transfers + 20 * kNames.size()) << "nothing was fused";
    comm->barrier();
  });
}

TEST(Topo, ATensorThatComesLateForAllIsTakenIntoTheNextPlan) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    for (int i = 0; i < 3; ++i) trainer.step(kNames);
    auto more = kNames;
    more.push_back("new");
    trainer.step_until_planned(more, 2);
    EXPECT_EQ(trainer.statistics().fallbacks, 1U);
    const auto before = trainer.statistics().negotiations;
    for (int i = 0; i < 5; ++i) trainer.step(more);
    EXPECT_EQ(trainer.statistics().negotiations, before);
    comm->barrier();
  });
}

TEST(Topo, AMissingTensorIsFoundAtTheEndOfTheStep) {
  run_ranks(3, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    auto fewer = kNames;
    fewer.erase(fewer.begin() + 2);
    trainer.step(fewer);
    trainer.step_until_planned(fewer, 2);
    EXPECT_EQ(trainer.statistics().fallbacks, 1U);
    comm->barrier();
  });
}

TEST(Topo, AMissingTensorIsFoundWithoutTheEndOfAStep) {
  run_ranks(2, 0, [](const auto& comm) {
    SyncOptions options = topo_options();
    options.plan_patience = milliseconds(300);
    Trainer trainer(comm, options);
    trainer.step_until_planned(kNames, 1);
    auto fewer = kNames;
    fewer.erase(fewer.begin());
    auto sums = trainer.started(fewer);
    trainer.finish(sums);
    EXPECT_EQ(trainer.statistics().fallbacks, 1U);
    comm->barrier();
  });
}

TEST(Topo, WhatComesOnceLeavesThePlanOnce) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    for (int i = 0; i < 3; ++i) {
      trainer.step({"once" + std::to_string(i)});
      for (int j = 0; j < 4; ++j) trainer.step(kNames);
    }
    EXPECT_EQ(trainer.statistics().plans, 1U);
    EXPECT_LE(trainer.statistics().fallbacks, 3U);
    comm->barrier();
  });
}

TEST(Topo, AnotherShapeForAllIsNegotiated) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    OneSum longer{.tensor = {.name = kNames[3], .shape = {1000}}};
    auto rest = kNames;
    rest.erase(rest.begin() + 3);
    auto sums = trainer.started(rest);
    longer.start(trainer.engine(), comm->rank(), 77);
    trainer.finish(sums);
    longer.expect(77, 2, 2);
    EXPECT_EQ(trainer.statistics().fallbacks, 1U);
    comm->barrier();
  });
}

std::string error_of(const SyncHandle& handle) {
  try {
    if (!handle.wait_for(kDeadline)) return "was never done";
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Topo, ShapesThatDifferAreAnErrorOnAllRanksAndThePlanGoesOn) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    OneSum odd{.tensor = {.name = "dddd", .shape = {5}}};
    if (comm->rank() == 1) odd.tensor.shape = {6};
    odd.start(trainer.engine(), comm->rank(), 0);
    EXPECT_THAT(error_of(odd.handle), AllOf(HasSubstr("dddd"), HasSubstr("5"), HasSubstr("6")));
    for (int i = 0; i < 4; ++i) trainer.step(kNames);
    EXPECT_EQ(trainer.statistics().plans, 1U);
    comm->barrier();
  });
}

TEST(Topo, RanksMayBeAtDifferentPlacesWhenAPlanIsLeft) {
  // Rank 1 is half a step late; the stray of rank 0 finds it in the middle of its own.
  run_ranks(3, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    for (int round = 0; round < 6; ++round) {
      std::vector<OneSum> sums;
      OneSum stray{.tensor = {.name = "stray" + std::to_string(round), .shape = {3}}};
      if (comm->rank() == 0) stray.start(trainer.engine(), 0, 5);
      if (comm->rank() == 1) std::this_thread::sleep_for(milliseconds(round % 3));
      sums = trainer.started(kNames);
      if (comm->rank() == 2) std::this_thread::sleep_for(milliseconds(2));
      if (comm->rank() != 0) stray.start(trainer.engine(), comm->rank(), 5);
      trainer.engine().end_step();
      trainer.finish(sums);
      stray.expect(5, 3, 3);
      trainer.step(kNames);
      trainer.step(kNames);
    }
    comm->barrier();
  });
}

TEST(Topo, DependentTensorsAreNotFused) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    const auto chained = [&] {
      auto first = trainer.started({"x", "y"});
      first[0].handle.wait();
      auto second = trainer.started({"z"});
      trainer.engine().end_step();
      for (auto& sum : second) first.push_back(std::move(sum));
      trainer.finish(first);
    };
    for (int i = 0; i < 20; ++i) chained();
    EXPECT_EQ(trainer.statistics().plans, 1U) << trainer.engine().explain();
    EXPECT_EQ(trainer.statistics().fallbacks, 0U);
    EXPECT_THAT(trainer.engine().explain(), HasSubstr("3 tensors in 2 transfers"));
    comm->barrier();
  });
}

TEST(Topo, OtherOperationsAreNegotiatedAndThePlanIsUsedAgain) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    std::vector<std::byte> data(40, static_cast<std::byte>(comm->rank() + 1));
    trainer.engine().broadcast({.name = "weights", .shape = {10}}, data, 1).wait();
    EXPECT_EQ(data[7], std::byte{2});
    trainer.step_until_planned(kNames, 1);
    trainer.engine().barrier("epoch").wait();
    const std::vector<std::byte> mine(8, std::byte{3});
    const auto gathered = trainer.engine().allgather({.name = "all", .shape = {2}}, mine);
    gathered.wait();
    EXPECT_EQ(gathered.gathered_rows(), 4U);
    for (int i = 0; i < 5; ++i) trainer.step(kNames);
    EXPECT_EQ(trainer.statistics().plans, 1U);
    comm->barrier();
  });
}

TEST(Topo, RanksWithDifferentNumbersOfStepsJoin) {
  run_ranks(3, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    const int mine = 2 + comm->rank();
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (int i = 0; i < mine; ++i) {
        OneSum sum{.tensor = {.name = kNames[0], .shape = {2}}};
        std::vector<OneSum> sums;
        for (const auto& name : kNames) {
          auto& one = sums.emplace_back(OneSum{.tensor = {.name = name, .shape = {2}}});
          one.start(trainer.engine(), comm->rank(), 9);
        }
        trainer.engine().end_step();
        for (auto& one : sums) {
          ASSERT_TRUE(one.handle.wait_for(kDeadline)) << one.tensor.name;
        }
      }
      ASSERT_TRUE(trainer.engine().join().wait_for(kDeadline));
    }
    for (int i = 0; i < 3; ++i) trainer.step(kNames);
    comm->barrier();
  });
}

Graph graph_of(const std::vector<std::string>& chain, const std::vector<std::string>& parallel) {
  Graph graph;
  const auto add = [&graph](const std::string& name) {
    return graph.add({.name = name, .collective = true, .shape = {1 + name.size() % 5}});
  };
  for (const auto& name : chain) {
    const std::size_t node = add(name);
    if (node > 0) graph.connect(node - 1, node);
  }
  for (const auto& name : parallel) add(name);
  return graph;
}

TEST(Topo, FollowsAGraphFromItsFirstStep) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    const Graph graph = graph_of({"a", "bb"}, {"ccc", "dddd", "eeeee"});
    trainer.engine().use_graph(graph, {});
    trainer.expect_plans(1);
    const auto before = trainer.statistics();
    for (int i = 0; i < 5; ++i) trainer.step({"eeeee", "a", "dddd", "bb", "ccc"});
    EXPECT_EQ(trainer.statistics().negotiations, before.negotiations);
    EXPECT_EQ(trainer.statistics().fallbacks, 0U);
    EXPECT_THAT(trainer.engine().explain(), HasSubstr("5 tensors in 2 transfers"));
    comm->barrier();
  });
}

TEST(Topo, ChangesBetweenTheFetchesOfAGraph) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    const Graph graph = graph_of({"a", "bb"}, {"ccc", "dddd", "eeeee"});
    const std::vector<std::string> train{"bb", "ccc"}, test{"dddd", "eeeee"};
    std::uint64_t negotiations = 0;
    for (int i = 0; i < 4; ++i) {
      trainer.engine().use_graph(graph, train);
      if (i == 1) negotiations = trainer.statistics().negotiations;
      trainer.step({"a", "bb", "ccc"});
      trainer.step({"a", "bb", "ccc"});
      trainer.engine().use_graph(graph, test);
      trainer.step(test);
    }
    EXPECT_EQ(trainer.statistics().negotiations, negotiations);
    EXPECT_EQ(trainer.statistics().fallbacks, 0U);
    comm->barrier();
  });
}

TEST(Topo, GraphsThatDifferBetweenRanksAreRefusedByAllAndNamed) {
  run_ranks(3, 0, [](const auto& comm) {
    Trainer trainer(comm);
    const auto refusal = [&](const Graph& graph, const std::vector<std::string>& fetches) {
      try {
        trainer.engine().use_graph(graph, fetches);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        return std::string(error.what());
      }
      return std::string("nothing was refused");
    };
    const bool odd = comm->rank() == 2;
    EXPECT_THAT(refusal(odd ? graph_of({"a", "bb"}, {"x"}) : graph_of({"a"}, {"bb", "x"}), {}),
                AllOf(HasSubstr("node 1 ('bb' on rank 0)"), HasSubstr("rank 2")));
    EXPECT_THAT(refusal(graph_of({"a"}, {"b"}), {odd ? "a" : "b"}), HasSubstr("fetched"));
    Graph circle = graph_of({"a", "bb"}, {});
    circle.connect("bb", "a");
    EXPECT_THAT(refusal(circle, {}), HasSubstr("a circle"));
    trainer.engine().use_graph(graph_of({}, kNames), {});
    trainer.step(kNames);
    comm->barrier();
  });
}

TEST(Topo, AGraphIsFollowedAlsoAfterStepsThatWereRecorded) {
  run_ranks(2, 0, [](const auto& comm) {
    Trainer trainer(comm);
    for (int i = 0; i < 3; ++i) trainer.step(kNames);
    trainer.engine().use_graph(graph_of({"a", "bb"}, {}), {});
    for (int i = 0; i < 3; ++i) trainer.step({"bb", "a"});
    EXPECT_EQ(trainer.statistics().fallbacks, 0U);
    comm->barrier();
  });
}

TEST(Topo, AStepThatOneRankNeverTakesIsReported) {
  test::LogCatcher log;
  run_ranks(2, 0, [&](const auto& comm) {
    SyncOptions options = topo_options();
    options.stall_warning = milliseconds(200);
    options.stall_limit = milliseconds(600);
    Trainer trainer(comm, options);
    trainer.step_until_planned(kNames, 1);
    std::string error;
    if (comm->rank() == 0) {
      OneSum alone{.tensor = {.name = kNames[0], .shape = {2}}};
      alone.start(trainer.engine(), 0, 0);
      error = error_of(alone.handle);
    } else {
      std::this_thread::sleep_for(milliseconds(1500));
      error = error_of(trainer.engine().barrier("late"));
    }
    EXPECT_THAT(error, AllOf(HasSubstr("'a'"), HasSubstr("rank 1")));
  });
}

TEST(Topo, OneRankNeedsNobody) {
  run_ranks(1, 0, [](const auto& comm) {
    Trainer trainer(comm);
    trainer.step_until_planned(kNames, 1);
    for (int i = 0; i < 3; ++i) trainer.step(kNames);
    trainer.step({"other"});
    for (int i = 0; i < 3; ++i) trainer.step(kNames);
  });
}

}  // namespace
}  // namespace forebay
