// Parameter servers with ranks as threads: without staleness they are plain descent with blocking
// sums; with it, nobody runs further ahead than allowed, nothing that was pushed is lost, and
// whatever happens nobody waits for ever.
#include "forebay/parameter_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "comm/values.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/server_contract.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

struct Layout {
  int ranks;
  int ranks_per_node;
  int servers;
  ProxyLevel proxies;
};

std::string name_of(const testing::TestParamInfo<Layout>& info) {
  const Layout& layout = info.param;
  return std::to_string(layout.ranks) + "x" + std::to_string(layout.ranks_per_node) + "_" +
         std::to_string(layout.servers) + "_" + std::string(to_string(layout.proxies));
}

/// A rank's side: parameters, and two numbers that are told.
class Worker {
 public:
  Worker(const std::shared_ptr<Communicator>& comm, std::size_t count, const Layout& layout,
         std::uint64_t staleness, UpdateRule rule = {})
      : rank_(comm->rank()),
        momentum_(count),
        parameters_(count, static_cast<float>(comm->rank())),
        servers_(comm, parameters_, told_, rule ? std::move(rule) : momentum_.rule(),
                 {.staleness = staleness,
                  .proxies = layout.proxies,
                  .servers = layout.servers,
                  .patience = std::chrono::seconds(60)}) {}

  void push(std::uint64_t step) {
    const std::array added{1.0F, static_cast<float>(step)};
    servers_.push(test::gradients_of(rank_, step, parameters_.size()), added);
  }
  std::uint64_t pull() { return servers_.pull(parameters_, told_); }
  void flush() { servers_.flush(parameters_, told_); }

  const std::vector<float>& parameters() const { return parameters_; }
  const std::array<float, 2>& told() const { return told_; }
  ParameterServer& servers() { return servers_; }

 private:
  int rank_;
  test::Momentum momentum_;
  std::vector<float> parameters_;
  std::array<float, 2> told_{};
  ParameterServer servers_;
};

class Servers : public testing::TestWithParam<Layout> {
 protected:
  static void run(const std::function<void(const std::shared_ptr<Communicator>&)>& body) {
    run_ranks(GetParam().ranks, GetParam().ranks_per_node, body);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Servers,
    testing::Values(Layout{1, 0, 0, ProxyLevel::numa}, Layout{2, 0, 0, ProxyLevel::node},
                    Layout{2, 1, 1, ProxyLevel::none}, Layout{3, 2, 0, ProxyLevel::numa},
                    Layout{4, 2, 4, ProxyLevel::node}, Layout{5, 3, 2, ProxyLevel::none},
                    Layout{8, 3, 0, ProxyLevel::node}, Layout{8, 1, 3, ProxyLevel::numa}),
    name_of);

TEST_P(Servers, WithoutStalenessAreBlockingDescent) {
  for (const std::size_t count : {1U, 7U, 1000U}) {
    run([&](const std::shared_ptr<Communicator>& comm) {
      Worker worker(comm, count, GetParam(), 0);
      test::Momentum momentum(count);
      std::vector<float> expected(count, 0.0F);  // rank 0's
      EXPECT_EQ(worker.parameters(), expected);
      for (std::uint64_t step = 0; step < 10; ++step) {
        EXPECT_EQ(worker.pull(), step);
        EXPECT_EQ(worker.parameters(), expected) << "step " << step;
        worker.push(step);
        std::vector<float> sum = test::gradients_of(comm->rank(), step, count);
        comm->all_reduce_sum(sum);
        momentum.update(0, expected, sum, static_cast<float>(comm->size()));
      }
      EXPECT_EQ(worker.pull(), 10U);
      EXPECT_EQ(worker.parameters(), expected);
      EXPECT_EQ(worker.told()[0], static_cast<float>(comm->size()));
      EXPECT_EQ(worker.told()[1], static_cast<float>(9 * comm->size()));
      worker.servers().close();
    });
  }
}

/// Each push takes 1 from every parameter: nothing may be lost or counted twice.
UpdateRule counting() {
  return [](const ShardUpdate& update) {
    for (float& parameter : update.parameters) parameter -= update.added[0];
    std::ranges::copy(update.added, update.told.begin());
  };
}

void sleep_for_a_moment(std::mt19937& random) {
  const auto most = std::uniform_int_distribution(0, 3)(random) == 0 ? 3000 : 200;
  std::this_thread::sleep_for(
      std::chrono::microseconds(std::uniform_int_distribution(0, most)(random)));
}

TEST_P(Servers, NobodyRunsFurtherAheadThanAllowed) {
  const int ranks = GetParam().ranks;
  for (const std::uint64_t staleness : {0U, 1U, 2U, 5U}) {
    std::vector<std::atomic<std::uint64_t>> pushed(static_cast<std::size_t>(ranks));
    const std::uint64_t steps = test::random_cases<std::uint64_t>(12);
    run([&](const std::shared_ptr<Communicator>& comm) {
      const auto rank = static_cast<std::size_t>(comm->rank());
      std::mt19937 random(static_cast<unsigned>(rank + 100 * staleness));
      Worker worker(comm, 40, GetParam(), staleness, counting());
      std::uint64_t last_version = 0;
      for (std::uint64_t step = 0; step < steps; ++step) {
        sleep_for_a_moment(random);
        const std::uint64_t version = worker.pull();
        EXPECT_GE(version + staleness, step);
        EXPECT_GE(version, last_version);
        last_version = version;
        // All that the version promises is in it.
        const float least = static_cast<float>(version * static_cast<std::uint64_t>(ranks));
        for (const float parameter : worker.parameters()) EXPECT_LE(parameter, -least);
        for (const auto& other : pushed) EXPECT_GE(other + staleness, step);
        ++pushed[rank];
        worker.push(step);
      }
      worker.flush();
      const float all = -static_cast<float>(steps) * static_cast<float>(ranks);
      for (const float parameter : worker.parameters()) EXPECT_EQ(parameter, all);
      worker.servers().close();
    });
  }
}

TEST_P(Servers, DifferentNumbersOfStepsEndWithTheSameParameters) {
  for (const std::uint64_t staleness : {0U, 3U}) {
    run([&](const std::shared_ptr<Communicator>& comm) {
      Worker worker(comm, 33, GetParam(), staleness);
      std::mt19937 random(static_cast<unsigned>(comm->rank()));
      std::uint64_t highest = 0;
      for (std::uint64_t round = 0; round < 4; ++round) {
        // Some have many, some none.
        const auto steps = (static_cast<std::uint64_t>(comm->rank()) * 5 + round * 3) % 7;
        std::uint64_t most = 0;
        for (const auto other : gather_all(*comm, steps)) most = std::max(most, other);
        for (std::uint64_t step = 0; step < steps; ++step) {
          worker.pull();
          sleep_for_a_moment(random);
          worker.push(step);
        }
        worker.flush();
        highest += most;
        EXPECT_EQ(worker.servers().clock(), highest);
        std::vector<float> first = worker.parameters();
        comm->broadcast(std::as_writable_bytes(std::span(first)), 0);
        EXPECT_EQ(worker.parameters(), first);
        EXPECT_EQ(worker.pull(), highest);
      }
      worker.servers().close();
    });
  }
}

TEST_P(Servers, ARankThatFailsEndsAllWithItsMessage) {
  const int ranks = GetParam().ranks;
  for (const std::uint64_t staleness : {0U, 2U}) {
    std::atomic<int> told = 0;
    run([&](const std::shared_ptr<Communicator>& comm) {
      Worker worker(comm, 9, GetParam(), staleness);
      try {
        for (std::uint64_t step = 0; step < 1000; ++step) {
          worker.pull();
          if (comm->rank() == ranks - 1 && step == 3) {
            worker.servers().fail(Error(ErrorKind::io, "the disk has melted"));
          }
          worker.push(step);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("the disk has melted"));
        ++told;
      }
    });
    EXPECT_EQ(told, ranks);
  }
}

TEST_P(Servers, AnExceptionThatLeavesThemEndsTheOthers) {
  if (GetParam().ranks == 1) GTEST_SKIP();
  std::atomic<int> ended = 0;
  run([&](const std::shared_ptr<Communicator>& comm) {
    try {
      Worker worker(comm, 9, GetParam(), 1);
      if (comm->rank() == 0) throw Error(ErrorKind::io, "no more");
      for (std::uint64_t step = 0;; ++step) {
        worker.pull();
        worker.push(step);
      }
    } catch (const Error&) {
      ++ended;
    }
  });
  EXPECT_EQ(ended, GetParam().ranks);
}

TEST_P(Servers, ARuleThatThrowsFailsAllRanks) {
  std::atomic<int> told = 0;
  run([&](const std::shared_ptr<Communicator>& comm) {
    Worker worker(comm, 5, GetParam(), 0, [](const ShardUpdate& update) {
      if (update.clock == 2) throw Error(ErrorKind::usage, "parameters have run away");
    });
    try {
      for (std::uint64_t step = 0; step < 5; ++step) {
        worker.push(step);
        worker.pull();
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("run away"));
      ++told;
    }
  });
  EXPECT_EQ(told, GetParam().ranks);
}

TEST(ParameterServers, AddUpInANodeBeforeAnythingLeavesIt) {
  std::array<std::uint64_t, 2> far{};
  for (const ProxyLevel level : {ProxyLevel::none, ProxyLevel::node}) {
    const Layout layout{6, 3, 2, level};
    std::mutex mutex;
    run_ranks(6, 3, [&](const std::shared_ptr<Communicator>& comm) {
      Worker worker(comm, 10'000, layout, 0);
      for (std::uint64_t step = 0; step < 5; ++step) {
        worker.push(step);
        worker.pull();
      }
      worker.servers().close();
      const std::lock_guard lock(mutex);
      far[level == ProxyLevel::none ? 0 : 1] += worker.servers().statistics().far_bytes;
    });
  }
  EXPECT_LT(far[1] * 2, far[0]);
}

TEST(ParameterServers, AWaitHasAnEnd) {
  EXPECT_THROW(run_ranks(2, 0,
                         [](const std::shared_ptr<Communicator>& comm) {
                           std::vector<float> parameters(3), none;
                           ParameterServer servers(comm, parameters, none,
                                                   [](const ShardUpdate&) {},
                                                   {.patience = std::chrono::milliseconds(200)});
                           if (comm->rank() == 1) {
                             std::this_thread::sleep_for(std::chrono::milliseconds(500));
                           } else {
                             servers.push(parameters, none);
                             servers.pull(parameters, none);
                           }
                         }),
               Error);
}

TEST(ParameterServers, RefuseWhatMeansNothing) {
  run_ranks(2, 0, [](const std::shared_ptr<Communicator>& comm) {
    std::vector<float> parameters(3), told(1);
    const UpdateRule rule = [](const ShardUpdate&) {};
    EXPECT_THROW(ParameterServer(comm, parameters, told, rule, {.servers = 3}), Error);
    EXPECT_THROW(ParameterServer(comm, parameters, told, rule,
                                 {.staleness = static_cast<std::uint64_t>(comm->rank())}),
                 Error);
    ParameterServer servers(comm, parameters, told, rule);
    EXPECT_THROW(servers.push(told, told), Error);
    EXPECT_THROW(servers.pull(parameters, parameters), Error);
    EXPECT_THAT(servers.explain(), HasSubstr("synchronous"));
    servers.close();
    EXPECT_THROW(servers.push(parameters, told), Error);
  });
}

}  // namespace
}  // namespace forebay
