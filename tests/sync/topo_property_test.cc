// Ranks that execute random graphs on several threads each, in whatever order and with whatever
// delays, under every strategy: sums are right, and nothing ever waits in a circle.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/sync.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/sync_contract.hpp"

namespace forebay {
namespace {

using test::OneSum;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{60};

Graph random_graph(std::mt19937& random) {
  Graph graph;
  const std::size_t nodes = 2 + random() % 14;
  for (std::size_t i = 0; i < nodes; ++i) {
    GraphNode node{.name = "n" + std::to_string(i), .collective = random() % 4 != 0};
    node.type = random() % 5 == 0 ? TensorType::int64 : TensorType::float32;
    node.shape = {random() % 40};
    graph.add(std::move(node));
    for (std::size_t edge = random() % 3; edge > 0 && i > 0; --edge) graph.connect(random() % i, i);
  }
  return graph;
}

/// One rank's execution of a graph: a node may start when what it needs is done.
class Execution {
 public:
  Execution(SyncEngine& engine, const Graph& graph, int rank, int ranks, std::uint64_t step)
      : engine_(engine),
        graph_(graph),
        rank_(rank),
        ranks_(ranks),
        step_(step),
        sums_(graph.nodes().size()),
        state_(graph.nodes().size(), State::waiting) {}

  void run(unsigned threads, std::mt19937& random) {
    std::vector<std::jthread> crew;
    for (unsigned i = 0; i < threads; ++i) {
      crew.emplace_back([this, seed = random()] { work_safely(seed); });
    }
    crew.clear();
    if (failure_) throw Error(*failure_);
  }

 private:
  enum class State { waiting, started, done };

  void work_safely(std::uint_fast32_t seed) {
    try {
      work(std::mt19937(seed));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = error;
    }
  }

  void work(std::mt19937 random) {
    const auto deadline = Clock::now() + kDeadline;
    for (;;) {
      if (Clock::now() > deadline) {
        throw Error(ErrorKind::communication, "step " + std::to_string(step_) + " is not over");
      }
      bool all_done = false;
      const auto node = next(random, all_done);
      if (all_done) return;
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
      if (node) {
        execute(*node);
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  /// Takes a random node that can start.
  std::optional<std::size_t> next(std::mt19937& random, bool& all_done) {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> ready;
    all_done = true;
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i] == State::started && graph_.nodes()[i].collective && is_done(i)) {
        state_[i] = State::done;
      }
      all_done = all_done && state_[i] == State::done;
    }
    for (std::size_t i = 0; i < state_.size(); ++i) {
      const auto needs = graph_.needs(i);
      if (state_[i] == State::waiting && std::all_of(needs.begin(), needs.end(), [this](auto need) {
            return state_[need] == State::done;
          })) {
        ready.push_back(i);
      }
    }
    if (ready.empty()) return {};
    const std::size_t node = ready[random() % ready.size()];
    state_[node] = State::started;
    return node;
  }

  bool is_done(std::size_t node) {
    OneSum& sum = sums_[node];
    if (!started_[node] || !sum.handle.done()) return false;
    sum.expect(step_, ranks_, ranks_);
    return true;
  }

  void execute(std::size_t node) {
    const GraphNode& what = graph_.nodes()[node];
    if (what.collective) {
      OneSum& sum = sums_[node];
      sum.tensor = {what.name, what.type, what.shape};
      sum.start(engine_, rank_, step_);
    }
    const std::lock_guard lock(mutex_);
    if (what.collective) {
      started_[node] = true;
    } else {
      state_[node] = State::done;
    }
  }

  SyncEngine& engine_;
  const Graph& graph_;
  int rank_;
  int ranks_;
  std::uint64_t step_;
  std::mutex mutex_;
  std::vector<OneSum> sums_;
  std::vector<State> state_;
  std::map<std::size_t, bool> started_;
  std::optional<Error> failure_;
};

struct Case {
  explicit Case(unsigned seed) : random(seed), graph(random_graph(random)) {
    ranks = 1 + static_cast<int>(random() % 4);
    steps = 3 + random() % 4;
    options.cycle = std::chrono::microseconds(200 + random() % 800);
    options.fusion_bytes = random() % 400;
    options.cache_capacity = random() % 3 == 0 ? 2 : 1024;
    constexpr const char* kStrategies[] = {"topo", "topo", "topo", "nbcs"};
    options.strategy = find_sync_way(kStrategies[random() % 4]);
    is_given = random() % 2 == 0;
    says_ends = random() % 2 == 0;
  }

  std::mt19937 random;
  Graph graph;
  int ranks = 1;
  std::uint64_t steps = 1;
  SyncOptions options;
  bool is_given = false;   ///< the graph, to the engine
  bool says_ends = false;  ///< of steps
};

void run_case(unsigned seed) {
  const Case one(seed);
  run_ranks(one.ranks, 0, [&](const std::shared_ptr<Communicator>& comm) {
    SyncEngine engine(comm, one.options);
    std::mt19937 random(seed * 1000 + static_cast<unsigned>(comm->rank()));
    if (one.is_given) engine.use_graph(one.graph, {});
    for (std::uint64_t step = 0; step < one.steps; ++step) {
      Execution execution(engine, one.graph, comm->rank(), comm->size(), step);
      execution.run(1 + static_cast<unsigned>(random() % 3), random);
      if (one.says_ends) engine.end_step();
    }
    engine.close();
  });
}

TEST(TopoProperty, RandomGraphsOnManyThreadsNeverWaitInACircle) {
  const int rounds = test::random_cases(15);
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    try {
      run_case(static_cast<unsigned>(round));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace forebay
