// Random rounds: any number of ranks, threads and tensors, any options, orders and delays. Every
// round has to end, and with the right sums.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <optional>
#include <random>
#include <thread>

#include "forebay/sync.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::OneSum;

/// The same on all ranks.
struct Round {
  std::uint64_t seed = 0;
  int ranks = 1;
  int ranks_per_node = 0;
  int threads = 1;
  int steps = 1;
  SyncOptions options;
  std::vector<TensorSpec> tensors;
  std::vector<Reduction> reductions;
  bool joins = false;  ///< ranks have different numbers of steps
};

template <typename T>
T any_of(std::mt19937_64& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

SyncOptions random_options(std::mt19937_64& random) {
  SyncOptions options;
  options.strategy = find_sync_way(any_of(random, {"negotiate", "gs", "nbcs", "topo"}));
  options.cycle = microseconds(any_of(random, {0, 100, 1000}));
  options.gs_every = static_cast<unsigned>(1 + random() % 3);
  options.fusion_bytes = any_of<std::uint64_t>(random, {0, 1000, 100'000, 64 << 20});
  options.cache_capacity = any_of<std::size_t>(random, {0, 1, 7, 1024});
  options.algorithm = any_of(random, {SyncAlgorithm::automatic, SyncAlgorithm::direct,
                                      SyncAlgorithm::two_level, SyncAlgorithm::mpi});
  options.deterministic = options.algorithm != SyncAlgorithm::mpi && random() % 4 == 0;
  // Rounds are short, but tensors that wait for the coordinator again are part of them.
  options.stall_warning = milliseconds(any_of(random, {50, 60'000}));
  return options;
}

Round random_round(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Round round{.seed = seed};
  round.ranks = static_cast<int>(1 + random() % 5);
  round.ranks_per_node = static_cast<int>(random() % 3);
  round.threads = static_cast<int>(1 + random() % 3);
  round.steps = static_cast<int>(1 + random() % 4);
  round.joins = random() % 4 == 0;
  round.options = random_options(random);
  const std::size_t count = 1 + random() % 25;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t extent = random() % 8 == 0 ? random() % 30'000 : random() % 100;
    round.tensors.push_back({.name = "t" + std::to_string(i),
                             .type = test::kTensorTypes[random() % 6],
                             .shape = {extent}});
    round.reductions.push_back(test::kAllReductions[random() % 4]);
  }
  return round;
}

void pause(std::mt19937_64& random) {
  if (random() % 8 == 0) std::this_thread::sleep_for(microseconds(random() % 500));
}

/// One step: all tensors, in this rank's own order, from several threads.
void run_step(SyncEngine& engine, const Round& round, int rank, int step, int adding) {
  std::mt19937_64 random(
      mix_key({round.seed, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step)}));
  std::vector<OneSum> sums(round.tensors.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].tensor = round.tensors[i];
    sums[i].reduction = round.reductions[i];
    order.push_back(i);
  }
  std::ranges::shuffle(order, random);
  const auto work = [&](std::size_t thread, std::uint64_t seed) {
    std::mt19937_64 delays(seed);
    const auto threads = static_cast<std::size_t>(round.threads);
    for (std::size_t i = thread; i < order.size(); i += threads) {
      pause(delays);
      sums[order[i]].start(engine, rank, static_cast<std::uint64_t>(step), delays() % 2 == 0);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t < round.threads; ++t) {
      threads.emplace_back(work, static_cast<std::size_t>(t), random());
    }
    work(0, random());
  }
  engine.end_step();
  for (auto& sum : sums) {
    ASSERT_TRUE(sum.handle.wait_for(std::chrono::seconds(60))) << sum.tensor.name;
    sum.expect(static_cast<std::uint64_t>(step), adding, round.ranks);
  }
}

void run_rank(const std::shared_ptr<Communicator>& comm, const Round& round) {
  SyncEngine engine(comm, round.options);
  // The first ranks have the most steps: one more than the next rank.
  const int more = round.joins ? round.ranks - 1 - comm->rank() : 0;
  for (int step = 0; step < round.steps + more; ++step) {
    const int adding = step < round.steps ? round.ranks : round.ranks - 1 - (step - round.steps);
    run_step(engine, round, comm->rank(), step, adding);
    if (::testing::Test::HasFailure()) throw Error(ErrorKind::usage, "see above");
  }
  if (round.joins) {
    ASSERT_TRUE(engine.join().wait_for(std::chrono::seconds(60)));
  }
  engine.close();
}

void run(const Round& round) {
  SCOPED_TRACE(fmt::format("round {}: {} ranks, strategy {}", round.seed, round.ranks,
                           round.options.strategy.name));
  try {
    run_ranks(round.ranks, round.ranks_per_node, [&](const auto& comm) { run_rank(comm, round); });
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(EngineProperty, RandomRoundsEndWithTheRightSums) {
  const auto rounds = test::random_cases<std::uint64_t>(20);
  for (std::uint64_t seed = 1; seed <= rounds && !::testing::Test::HasFailure(); ++seed) {
    run(random_round(seed));
  }
}

// In one run of six or so the others begin their plan in the middle of a step.
TEST(EngineProperty, RanksThatHaveJoinedKnowWhatIsLeftOfAStep) {
  const Round round = random_round(1192);
  ASSERT_TRUE(round.joins);
  ASSERT_EQ(round.options.strategy.name, "topo");
  for (int i = 0; i < 20 && !::testing::Test::HasFailure(); ++i) run(round);
}

}  // namespace
}  // namespace forebay
