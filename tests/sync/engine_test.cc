// The engine on ranks as threads: right results whatever the strategy, type, size and order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "forebay/sync.hpp"
#include "tests/support/log_catcher.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using test::OneSum;
using test::sums_of_all_kinds;
using ::testing::HasSubstr;

SyncOptions quick(const std::string& strategy) {
  return {.strategy = find_sync_way(strategy),
          .cycle = std::chrono::microseconds(300),
          .stall_warning = milliseconds(20'000)};
}

class Engine : public ::testing::TestWithParam<std::string> {
 protected:
  SyncOptions options() const { return quick(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Strategies, Engine, ::testing::Values("negotiate", "gs", "nbcs", "topo"),
                         [](const auto& one) { return one.param; });

TEST_P(Engine, GivesTheSumsOfAllTypesReductionsAndSizes) {
  for (const int ranks : {1, 2, 5, 8}) {
    run_ranks(ranks, ranks == 5 ? 2 : 0, [&](const auto& comm) {
      auto options = this->options();
      options.fusion_bytes = ranks % 2 == 0 ? 64 << 20 : 20'000;
      SyncEngine engine(comm, options);
      auto sums = sums_of_all_kinds(3000);
      for (int step = 0; step < 3; ++step) {
        for (auto& sum : sums) sum.start(engine, comm->rank(), step, step % 2 == 1);
        for (auto& sum : sums) sum.expect(step, ranks, ranks);
        engine.end_step();
      }
      engine.close();
    });
  }
}

TEST_P(Engine, GivesTheSameWithoutFusionAndWithoutCache) {
  run_ranks(3, 0, [&](const auto& comm) {
    auto options = this->options();
    options.fusion_bytes = 0;
    options.cache_capacity = 0;
    SyncEngine engine(comm, options);
    auto sums = sums_of_all_kinds(3000);
    for (int step = 0; step < 2; ++step) {
      for (auto& sum : sums) sum.start(engine, comm->rank(), step);
      for (auto& sum : sums) sum.expect(step, 3, 3);
    }
    EXPECT_EQ(engine.statistics().cache_hits, 0U);
  });
}

TEST_P(Engine, MovesTensorsInPiecesWhereTheyAreLongerThanABuffer) {
  run_ranks(2, 0, [&](const auto& comm) {
    auto options = this->options();
    options.fusion_bytes = 1;  // buffers are 64 KiB long then
    SyncEngine engine(comm, options);
    for (int step = 0; step < 3; ++step) {
      OneSum large{.tensor = {.name = "large", .shape = {3, 50'000}}};
      OneSum small{.tensor = {.name = "small", .shape = {3}}};
      large.start(engine, comm->rank(), step, step == 1);
      small.start(engine, comm->rank(), step);
      large.expect(step, 2, 2);
      small.expect(step, 2, 2);
    }
  });
}

TEST_P(Engine, BroadcastsGathersAndMeets) {
  run_ranks(4, 0, [&](const auto& comm) {
    auto options = this->options();
    options.fusion_bytes = 1;
    SyncEngine engine(comm, options);
    const TensorSpec weights{.name = "weights", .shape = {40'000}};
    for (int step = 0; step < 3; ++step) {
      auto data = test::numbers_of(weights, comm->rank(), step);
      const int root = step % 4;
      const auto sent = engine.broadcast(weights, data, root);
      // 5,000 rows of rank 0, none of rank 1, ...
      const std::uint64_t rows[] = {5'000, 0, 3, 40'000};
      const TensorSpec part{
          .name = "part", .type = TensorType::int64, .shape = {rows[comm->rank()], 2}};
      const auto mine = test::numbers_of(part, comm->rank(), step);
      const auto gathered = engine.allgather(part, mine);
      engine.barrier("here").wait();
      sent.wait();
      EXPECT_EQ(data, test::numbers_of(weights, root, step));
      gathered.wait();
      EXPECT_EQ(gathered.gathered_rows(), 45'003U);
      std::vector<std::byte> expected;
      for (int rank = 0; rank < 4; ++rank) {
        const TensorSpec theirs{
            .name = "part", .type = TensorType::int64, .shape = {rows[rank], 2}};
        const auto block = test::numbers_of(theirs, rank, step);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      EXPECT_TRUE(std::ranges::equal(gathered.gathered(), expected));
    }
  });
}

/// In an order of its own on every rank, and from several threads.
TEST_P(Engine, TakesTensorsFromManyThreadsInAnyOrder) {
  constexpr int kThreads = 3;
  run_ranks(3, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    for (int step = 0; step < 4; ++step) {
      std::vector<OneSum> sums(60);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].tensor = {.name = "t" + std::to_string(i), .shape = {i * 10 + 1}};
      }
      std::mt19937 random(static_cast<unsigned>(comm->rank() * 100 + step));
      std::vector<std::size_t> order(sums.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      std::vector<std::jthread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          for (std::size_t i = static_cast<std::size_t>(t); i < order.size(); i += kThreads) {
            sums[order[i]].start(engine, comm->rank(), step);
          }
          for (std::size_t i = static_cast<std::size_t>(t); i < order.size(); i += kThreads) {
            sums[order[i]].expect(step, 3, 3);
          }
        });
      }
    }
  });
}

TEST_P(Engine, FollowsNamesThatOutnumberItsCache) {
  const test::LogCatcher log;
  constexpr int kRanks = 3;
  run_ranks(kRanks, 0, [&](const auto& comm) {
    auto options = this->options();
    options.cache_capacity = 16;
    SyncEngine engine(comm, options);
    std::mt19937 random(static_cast<unsigned>(comm->rank()));
    std::vector<OneSum> sums(3000);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].tensor = {.name = "layer." + std::to_string(i), .shape = {1 + i % 50}};
    }
    for (int step = 0; step < 2; ++step) {
      std::vector<OneSum*> order;
      for (auto& sum : sums) order.push_back(&sum);
      std::ranges::shuffle(order, random);
      for (auto* sum : order) sum->start(engine, comm->rank(), step);
      for (auto& sum : sums) sum.expect(step, kRanks, kRanks);
    }
  });
  EXPECT_LE(log.messages().size(), static_cast<std::size_t>(kRanks));
}

TEST_P(Engine, CountsWhatItHasDone) {
  run_ranks(2, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    for (int step = 0; step < 5; ++step) {
      std::vector<OneSum> sums(10);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].tensor = {.name = "t" + std::to_string(i), .shape = {100}};
        sums[i].start(engine, comm->rank(), step);
      }
      for (auto& sum : sums) sum.expect(step, 2, 2);
    }
    const bool planned = this->GetParam() == "topo";
    engine.barrier("end").wait();
    // The thread tells at the end of the turn that has ended the last wait.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    auto statistics = engine.statistics();
    while (statistics.tensors < 50 || (!planned && statistics.cache_misses < 11)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(milliseconds(1));
      statistics = engine.statistics();
    }
    EXPECT_EQ(statistics.bytes, 50U * 400);
    EXPECT_GE(statistics.wire_bytes, 50U * 400);
    EXPECT_GT(statistics.transfers, 0U);
    EXPECT_LE(statistics.largest_transfer, 4000U);
    EXPECT_THAT(engine.explain(), HasSubstr(this->GetParam()));
    if (planned) return;
    EXPECT_EQ(statistics.cache_hits, 40U);
    EXPECT_EQ(statistics.cache_misses, 11U);
    EXPECT_GT(statistics.cycles, statistics.empty_cycles);
    EXPECT_GE(statistics.negotiations, statistics.cycles);
  });
}

TEST_P(Engine, RefusesWhatMakesNoSense) {
  run_ranks(2, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    std::vector<std::byte> memory(12);
    const TensorSpec three{.name = "three", .shape = {3}};
    EXPECT_THROW(engine.allreduce({.name = "", .shape = {3}}, memory, memory), Error);
    EXPECT_THROW(engine.allreduce({.name = "four", .shape = {4}}, memory, memory), Error);
    EXPECT_THROW(
        engine.allreduce({.name = "much", .shape = {1ULL << 40, 1ULL << 40}}, memory, memory),
        Error);
    EXPECT_THROW(engine.broadcast(three, memory, 2), Error);
    EXPECT_THROW(engine.allgather({.name = "one", .shape = {}}, std::span(memory).first(4)), Error);
    std::optional<SyncHandle> first;
    if (comm->rank() == 0) {
      first = engine.allreduce(three, memory, memory);
      try {
        engine.allreduce(three, memory, memory);
        ADD_FAILURE() << "started twice";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_THAT(error.what(), HasSubstr("'three'"));
      }
      EXPECT_FALSE(first->wait_for(milliseconds(2)));
    }
    comm->barrier();
    if (comm->rank() == 1) first = engine.allreduce(three, memory, memory);
    first->wait();
    EXPECT_TRUE(first->done());
    engine.close();
    EXPECT_THROW(engine.allreduce(three, memory, memory), Error);
  });
}

TEST_P(Engine, TellsTheCallerOfAnEndJustBeforeTheHandleIsDone) {
  run_ranks(2, 0, [&](const auto& comm) {
    SyncEngine engine(comm, this->options());
    std::vector<std::byte> memory(12);
    std::vector<std::byte> copy(12, std::byte{1});
    const TensorSpec three{.name = "three", .shape = {3}};
    for (int step = 0; step < 3; ++step) {
      memory.assign(12, std::byte{0});
      // What it does is part of the result: whoever waits for that has it.
      const auto end = [&](bool good) {
        ASSERT_TRUE(good);
        std::this_thread::sleep_for(milliseconds(5));
        copy = memory;
      };
      engine.allreduce(three, memory, memory, Reduction::sum, end).wait();
      EXPECT_EQ(std::exchange(copy, std::vector(12, std::byte{1})), memory);
      engine.broadcast(three, memory, 1, end).wait();
      EXPECT_EQ(std::exchange(copy, std::vector(12, std::byte{1})), memory);
      engine.end_step();
    }
    std::atomic<int> failures = 0;
    const auto fails = [&](bool good) { failures += good ? 100 : 1; };
    const TensorSpec differs{.name = "differs", .shape = {comm->rank() == 0 ? 3U : 1U}};
    const auto bytes = std::span(memory).first(differs.bytes());
    EXPECT_THROW(engine.allreduce(differs, bytes, bytes, Reduction::sum, fails).wait(), Error);
    EXPECT_EQ(failures, 1);
    EXPECT_THROW(engine.broadcast(three, memory, 2, fails), Error);
    EXPECT_EQ(failures, 1) << "it was never started";
    comm->barrier();
    if (comm->rank() == 1) return engine.fail(Error(ErrorKind::cancelled, "on purpose"));
    EXPECT_THROW(engine.allreduce(three, memory, memory, Reduction::sum, fails).wait(), Error);
    EXPECT_EQ(failures, 2);
    EXPECT_THROW(engine.broadcast(three, memory, 0, fails).wait(), Error);
    EXPECT_EQ(failures, 3) << "the engine had failed before";
  });
}

TEST(EngineOptions, AreCheckedOnAllRanks) {
  run_ranks(2, 0, [&](const auto& comm) {
    const auto fails = [&](const SyncOptions& options) {
      EXPECT_THROW(SyncEngine(comm, options), Error);
    };
    fails({.gs_every = 0});
    fails({.stall_warning = milliseconds(0)});
    fails({.algorithm = SyncAlgorithm::mpi, .deterministic = true});
    fails({.placement = "nowhere"});
    fails({.fusion_bytes = comm->rank() == 0 ? 1U : 2U});
    fails({.strategy = find_sync_way(comm->rank() == 0 ? "gs" : "nbcs")});
  });
  EXPECT_EQ(find_sync_way("nbcs").name, "nbcs");
  EXPECT_THROW(find_sync_way("fast"), Error);
}

TEST(EngineTimeline, HasATrackForEveryTensor) {
  Trace trace(0);
  const auto comm = self_communicator();
  {
    SyncEngine engine(comm, {.strategy = find_sync_way("negotiate"), .trace = &trace});
    OneSum sum{.tensor = {.name = "conv1.weight", .shape = {100}}};
    sum.start(engine, 0, 0);
    sum.expect(0, 1, 1);
  }
  const std::string events = trace.events();
  EXPECT_THAT(events, HasSubstr(R"("name":"conv1.weight")"));
  for (const char* what : {"waiting", "copy in", "transfer", "copy out"}) {
    EXPECT_THAT(events, HasSubstr(what));
  }
}

}  // namespace
}  // namespace forebay
