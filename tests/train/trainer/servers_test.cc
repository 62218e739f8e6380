// Training with parameter servers: without staleness the numbers are those of `blocking`; with it,
// ranks end with the same network all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "tests/train/trainer/training_runs.hpp"
#include "train/report.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

using test::train;
using ::testing::HasSubstr;

/// On rank 1 the third backward pass fails.
class Broken final : public Quadrants {
 public:
  explicit Broken(bool breaks) : breaks_(breaks) {}
  void backward(const BackwardPass& pass) override {
    if (breaks_ && ++passes_ == 3) throw Error(ErrorKind::unsupported, "the third was too much");
    Quadrants::backward(pass);
  }

 private:
  bool breaks_;
  int passes_ = 0;
};

class ServersOfTraining : public testing::Test {
 protected:
  ServersOfTraining() { data_ = test::LmdbBuilder().in_order(48).values(17).build(dir_.file("d")); }

  TrainOptions options(const std::string& strategy, SolverKind solver = SolverKind::sgd) const {
    TrainOptions options;
    options.dataset = data_;
    options.test = data_;
    options.classes = 256;
    options.loader = LoaderOptions::parse("coalesce=1,stage-bytes=1MiB,codec=raw,seed=3,batch=7");
    options.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.loader.epochs = 2;
    options.gradients.strategy = find_sync_way(strategy, gradient_ways());
    options.solver.kind = solver;
    return options;
  }

  std::vector<double> curve(int ranks, const TrainOptions& options) const {
    return test::curve(ranks, options, dir_.file("log"));
  }

  static void expect_near(const std::vector<double>& mine, const std::vector<double>& expected) {
    ASSERT_EQ(mine.size(), expected.size());
    for (std::size_t i = 0; i < mine.size(); ++i) ASSERT_NEAR(mine[i], expected[i], 1e-5) << i;
  }

  test::TemporaryFolder dir_;
  std::string data_;
};

TEST_F(ServersOfTraining, WithoutStalenessGiveTheCurveOfBlocking) {
  for (const SolverKind solver : {SolverKind::sgd, SolverKind::adam}) {
    for (const int ranks : {1, 2, 3, 5}) {
      const auto expected = curve(ranks, options("blocking", solver));
      for (const int servers : {0, ranks}) {
        TrainOptions run = options("servers", solver);
        run.gradients.servers = servers;
        expect_near(curve(ranks, run), expected);
      }
    }
  }
}

TEST_F(ServersOfTraining, ShortAndEmptySharesCountForWhatTheyHold) {
  TrainOptions run = options("blocking");
  run.loader.order = OrderName::shuffled;
  run.loader.batch = 20;
  const auto expected = curve(9, run);
  run.gradients.strategy = find_sync_way("servers");
  expect_near(curve(9, run), expected);
}

TEST_F(ServersOfTraining, ResumedEqualsStraight) {
  const auto expected = curve(3, options("blocking"));
  TrainOptions parts = options("servers");
  parts.gradients.servers = 2;
  parts.checkpoint = dir_.file("checkpoints");
  parts.checkpoint_every = 2;
  parts.loader.epochs = 0;
  parts.loader.iterations = 5;
  curve(3, parts);
  parts.loader.iterations = 0;
  parts.loader.epochs = 2;
  parts.resume = true;
  expect_near(curve(3, parts), expected);
}

TEST_F(ServersOfTraining, RanksMayDriftAndLearnAllTheSame) {
  const double expected = train(4, options("blocking")).test.value().loss;
  for (const std::uint64_t staleness : {1U, 4U}) {
    TrainOptions run = options("servers");
    run.gradients.staleness = staleness;
    const TrainReport report = train(4, run);
    EXPECT_EQ(report.iterations, 14U);
    EXPECT_NEAR(report.test.value().loss, expected, 0.25 * expected);
  }
}

TEST_F(ServersOfTraining, ARankThatFailsEndsAllWithItsMessage) {
  for (const std::uint64_t staleness : {0U, 2U}) {
    TrainOptions run = options("servers");
    run.gradients.staleness = staleness;
    std::atomic<int> told = 0;
    run_ranks(3, 2, [&](const std::shared_ptr<Communicator>& comm) {
      try {
        const bool breaks = comm->rank() == 1;
        Trainer trainer(comm, run,
                        [&](const NetworkOptions&) { return std::make_unique<Broken>(breaks); });
        trainer.run();
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("too much"));
        ++told;
      }
    });
    EXPECT_EQ(told, 3);
  }
}

TEST_F(ServersOfTraining, ReportsTellWhatTheyDid) {
  const auto json = nlohmann::json::parse(to_json(train(2, options("servers"))));
  EXPECT_EQ(json["sync"]["strategy"], "servers");
  EXPECT_EQ(json["sync"]["ranks"][0]["servers"]["pushes"], 14);
  EXPECT_EQ(json["sync"]["ranks"][0]["servers"]["updates"], 14);
}

}  // namespace
}  // namespace forebay
