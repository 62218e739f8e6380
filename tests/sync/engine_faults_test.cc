// What the engine makes of ranks that do different things, or end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/clock.hpp"
#include "forebay/sync.hpp"
#include "tests/support/log_catcher.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using test::OneSum;
using ::testing::AllOf;
using ::testing::HasSubstr;

class EngineFaults : public ::testing::TestWithParam<std::string> {
 protected:
  SyncOptions options() const {
    return {.strategy = find_sync_way(GetParam()), .cycle = std::chrono::microseconds(300)};
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, EngineFaults,
                         ::testing::Values("negotiate", "gs", "nbcs", "topo"),
                         [](const auto& one) { return one.param; });

/// What waiting for a handle throws.
std::string failure_of(const SyncHandle& handle) {
  try {
    if (!handle.wait_for(std::chrono::seconds(20))) return "nothing for 20 s";
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_sum(SyncEngine& engine, const TensorSpec& tensor, int rank, int ranks,
                std::uint64_t step) {
  OneSum sum{.tensor = tensor};
  sum.start(engine, rank, step);
  sum.expect(step, ranks, ranks);
}

TEST_P(EngineFaults, DifferentShapesAreAnErrorOnEveryRankAndNothingEnds) {
  for (const int warm_steps : {0, 1, 3}) {
    run_ranks(3, 0, [&](const auto& comm) {
      SyncEngine engine(comm, this->options());
      const TensorSpec good{.name = "conv1", .shape = {3, 4}};
      for (int step = 0; step < warm_steps; ++step) {
        expect_sum(engine, good, comm->rank(), 3, step);
      }
      OneSum odd{.tensor = comm->rank() == 1 ? TensorSpec{.name = "conv1", .shape = {4}} : good};
      odd.start(engine, comm->rank(), 0);
      EXPECT_THAT(failure_of(odd.handle),
                  AllOf(HasSubstr("'conv1'"), HasSubstr("[3, 4] on ranks 0, 2"),
                        HasSubstr("[4] on rank 1")))
          << warm_steps;
      expect_sum(engine, good, comm->rank(), 3, 7);
      expect_sum(engine, {.name = "fc", .shape = {9}}, comm->rank(), 3, 8);
      expect_sum(engine, good, comm->rank(), 3, 9);
    });
  }
}

TEST_P(EngineFaults, SoAreDifferentTypesReductionsOperationsAndRoots) {
  run_ranks(2, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    const bool odd = comm->rank() == 1;
    std::vector<std::byte> memory(16);
    const TensorSpec tensor{.name = "x", .shape = {4}};
    expect_sum(engine, tensor, comm->rank(), 2, 0);
    TensorSpec other = tensor;
    other.type = TensorType::int32;
    EXPECT_THAT(failure_of(engine.allreduce(odd ? other : tensor, memory, memory)),
                AllOf(HasSubstr("float32 [4] on rank 0"), HasSubstr("int32 [4] on rank 1")));
    EXPECT_THAT(
        failure_of(engine.allreduce(tensor, memory, memory, odd ? Reduction::max : Reduction::sum)),
        AllOf(HasSubstr("allreduce(sum)"), HasSubstr("allreduce(max)")));
    EXPECT_THAT(failure_of(engine.broadcast(tensor, memory, odd ? 1 : 0)),
                AllOf(HasSubstr("from rank 0"), HasSubstr("from rank 1")));
    EXPECT_THAT(failure_of(odd ? engine.barrier("x") : engine.allreduce(tensor, memory, memory)),
                AllOf(HasSubstr("barrier"), HasSubstr("allreduce")));
    other = {.name = "x", .shape = {2, 2}};
    EXPECT_THAT(failure_of(engine.allgather(odd ? other : tensor, memory)), HasSubstr("[2, 2]"));
    expect_sum(engine, tensor, comm->rank(), 2, 1);
  });
}

/// Rank r has 4 + r steps.
TEST_P(EngineFaults, RanksWithFewerStepsJoin) {
  constexpr int kRanks = 4;
  for (const std::size_t cache : {1024, 2, 0}) {
    run_ranks(kRanks, 0, [&](const auto& comm) {
      auto options = this->options();
      options.cache_capacity = cache;
      SyncEngine engine(comm, options);
      const int rank = comm->rank();
      for (int epoch = 0; epoch < 2; ++epoch) {
        // The first ranks have the most steps, for `adding` to count from the first.
        const int steps = 4 + (kRanks - 1 - rank);
        for (int step = 0; step < steps; ++step) {
          const int adding = step < 4 ? kRanks : kRanks - (step - 3);
          std::vector<OneSum> sums;
          for (const Reduction reduction : test::kAllReductions) {
            for (const TensorType type : {TensorType::float32, TensorType::int32}) {
              sums.push_back({.tensor = {.name = std::string(to_string(reduction)) +
                                                 std::string(to_string(type)),
                                         .type = type,
                                         .shape = {100}},
                              .reduction = reduction});
            }
          }
          for (auto& sum : sums) sum.start(engine, rank, step);
          for (auto& sum : sums) sum.expect(step, adding, kRanks);
          engine.end_step();
        }
        const auto joined = engine.join();
        EXPECT_TRUE(joined.wait_for(std::chrono::seconds(20)));
      }
      expect_sum(engine, {.name = "last", .shape = {5}}, rank, kRanks, 0);
    });
  }
}

TEST_P(EngineFaults, WhoHasJoinedStartsNothingUntilAllHave) {
  run_ranks(2, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    std::vector<std::byte> memory(4);
    const TensorSpec tensor{.name = "x", .shape = {1}};
    SyncHandle joined;
    if (comm->rank() == 1) {
      joined = engine.join();
      EXPECT_THROW(engine.allreduce(tensor, memory, memory), Error);
      EXPECT_THROW(engine.join(), Error);
    }
    comm->barrier();
    if (comm->rank() == 0) joined = engine.join();
    joined.wait();
    engine.barrier("after").wait();
    expect_sum(engine, tensor, comm->rank(), 2, 0);
  });
}

TEST_P(EngineFaults, ABroadcastOfWhoHasJoinedIsAnError) {
  run_ranks(3, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    std::vector<std::byte> memory(8);
    SyncHandle joined;
    if (comm->rank() == 2) joined = engine.join();
    comm->barrier();
    if (comm->rank() != 2) {
      const TensorSpec tensor{.name = "w", .type = TensorType::int32, .shape = {2}};
      EXPECT_THAT(failure_of(engine.broadcast(tensor, memory, 2)), HasSubstr("joined"));
      auto mine = test::numbers_of(tensor, comm->rank(), 0);
      const auto gathered = engine.allgather(tensor, mine);
      gathered.wait();
      EXPECT_EQ(gathered.gathered_rows(), 4U);
      auto data = test::numbers_of(tensor, comm->rank(), 0);
      engine.broadcast(tensor, data, 1).wait();
      EXPECT_EQ(data, test::numbers_of(tensor, 1, 0));
      joined = engine.join();
    }
    joined.wait();
  });
}

TEST_P(EngineFaults, ATensorThatARankLacksIsReportedOnce) {
  for (const bool warm : {false, true}) {
    const test::LogCatcher log;
    std::atomic<std::size_t> before = 0;  // a busy machine may be as slow as a rank that lacks one
    run_ranks(3, 0, [&](const auto& comm) {
      auto options = this->options();
      options.stall_warning = milliseconds(200);
      SyncEngine engine(comm, options);
      const TensorSpec tensor{.name = "conv9", .shape = {3}};
      if (warm) expect_sum(engine, tensor, comm->rank(), 3, 0);
      comm->barrier();
      if (comm->rank() == 1) before = log.count("conv9");
      comm->barrier();
      OneSum sum{.tensor = tensor};
      if (comm->rank() == 1) {
        const double end = now_seconds() + 20;
        while (log.count("conv9") == before && now_seconds() < end) {
          std::this_thread::sleep_for(milliseconds(10));
        }
        std::this_thread::sleep_for(milliseconds(300));
      }
      sum.start(engine, comm->rank(), 1);
      sum.expect(1, 3, 3);
    });
    EXPECT_EQ(log.count("conv9") - before, 1U) << warm;
    EXPECT_THAT(log.messages().back(), HasSubstr("rank 1")) << warm;
  }
}

/// Five steps on one rank, four on the other, and nobody joins.
TEST_P(EngineFaults, ATensorThatARankNeverHasFailsAllWithinTheLimit) {
  run_ranks(2, 0, [&](const auto& comm) {
    auto options = this->options();
    options.stall_warning = milliseconds(200);
    options.stall_limit = milliseconds(600);
    SyncEngine engine(comm, options);
    const TensorSpec tensor{.name = "conv9", .shape = {3}};
    for (int step = 0; step < 4; ++step) expect_sum(engine, tensor, comm->rank(), 2, step);
    const double begin = now_seconds();
    OneSum sum{.tensor = tensor};
    if (comm->rank() == 0) {
      sum.start(engine, 0, 4);
      EXPECT_THAT(failure_of(sum.handle),
                  AllOf(HasSubstr("'conv9'"), HasSubstr("rank 1"), HasSubstr("waited")));
    } else {
      while (now_seconds() < begin + 20) {
        try {
          engine.check();
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr("'conv9'"));
          break;
        }
        std::this_thread::sleep_for(milliseconds(5));
      }
    }
    EXPECT_LT(now_seconds() - begin, 10);
    EXPECT_THROW(engine.check(), Error);
    EXPECT_THROW(engine.close(), Error);
  });
}

/// After no step, when tensors are new, and after some, when they are known or part of a plan.
TEST_P(EngineFaults, ATensorThatWaitsForARankThatHasClosedFailsAll) {
  for (const int steps : {0, 1, 6}) {
    run_ranks(3, 0, [&](const auto& comm) {
      SyncEngine engine(comm, this->options());
      const TensorSpec tensor{.name = "conv9", .shape = {3}};
      for (int step = 0; step < steps; ++step) expect_sum(engine, tensor, comm->rank(), 3, step);
      const double begin = now_seconds();
      if (comm->rank() == 1) {
        EXPECT_THROW(engine.close(), Error) << steps;
      } else {
        OneSum sum{.tensor = tensor};
        sum.start(engine, comm->rank(), static_cast<std::uint64_t>(steps));
        EXPECT_THAT(failure_of(sum.handle),
                    AllOf(HasSubstr("'conv9'"), HasSubstr("rank 1"), HasSubstr("has closed")))
            << steps;
      }
      EXPECT_LT(now_seconds() - begin, 10) << steps;
    });
  }
}

TEST_P(EngineFaults, AFailureReachesEveryHandleOfEveryRank) {
  run_ranks(4, 2, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    expect_sum(engine, {.name = "x", .shape = {3}}, comm->rank(), 4, 0);
    OneSum sum{.tensor = {.name = "y", .shape = {3}}};
    if (comm->rank() == 2) {
      engine.fail(Error(ErrorKind::io, "the disk is gone", ""));
    } else {
      sum.start(engine, comm->rank(), 0);
      EXPECT_THAT(failure_of(sum.handle),
                  AllOf(HasSubstr("the disk is gone"), HasSubstr("rank 2")));
    }
    while (true) {
      try {
        engine.check();
        std::this_thread::sleep_for(milliseconds(1));
      } catch (const Error&) {
        break;
      }
    }
    sum.start(engine, comm->rank(), 0);
    EXPECT_THAT(failure_of(sum.handle), HasSubstr("the disk is gone"));
  });
}

TEST_P(EngineFaults, ARankThatIsUnwoundEndsTheOthers) {
  const double begin = now_seconds();
  EXPECT_THROW(run_ranks(3, 0,
                         [&](const auto& comm) {
                           SyncEngine engine(comm, this->options());
                           OneSum sum{.tensor = {.name = "y", .shape = {3}}};
                           if (comm->rank() == 1) throw Error(ErrorKind::io, "no more data", "");
                           sum.start(engine, comm->rank(), 0);
                           EXPECT_THAT(failure_of(sum.handle), HasSubstr("rank 1"));
                         }),
               Error);
  EXPECT_LT(now_seconds() - begin, 10);
}

TEST_P(EngineFaults, HandlesOutliveTheirEngine) {
  SyncHandle done;
  SyncHandle gathered;
  const auto comm = self_communicator();
  const TensorSpec tensor{.name = "x", .shape = {2}};
  std::vector<std::byte> memory(8);
  {
    SyncEngine engine(comm, this->options());
    done = engine.allreduce(tensor, memory, memory);
    gathered = engine.allgather({.name = "y", .shape = {2}}, memory);
  }
  done.wait();
  gathered.wait();
  EXPECT_EQ(gathered.gathered_rows(), 2U);
}

}  // namespace
}  // namespace forebay
