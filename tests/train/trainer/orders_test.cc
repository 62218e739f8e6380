// Training in orders that are new in every epoch: what short and empty shares weigh, where epochs
// end, and that a resumed run goes on with the same numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "tests/train/trainer/training_runs.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

using test::train;
using ::testing::HasSubstr;

constexpr std::uint64_t kSamples = 50;

class TrainingOrders : public testing::Test {
 protected:
  TrainingOrders() {
    training_ = test::LmdbBuilder().in_order(kSamples).values(17).build(dir_.file("train"));
  }

  /// 50 samples in batches of 7: the eighth batch has one sample.
  TrainOptions options(const std::string& order, std::uint64_t epochs) const {
    TrainOptions options;
    options.dataset = training_;
    options.test = training_;
    options.classes = 256;
    options.loader = LoaderOptions::parse("batch=7,stage-bytes=1MiB,codec=raw,seed=3," + order);
    options.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.loader.epochs = epochs;
    return options;
  }

  static std::uint64_t images(const TrainReport& report) {
    std::uint64_t sum = 0;
    for (const Breakdown& rank : report.ranks) sum += rank.images;
    return sum;
  }

  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Trains in two parts, the second from the checkpoint of the first; its log.
  std::string log_of_parts(TrainOptions run, int ranks, std::uint64_t iterations) const {
    run.log = dir_.file("parts.log");
    run.checkpoint = dir_.file("checkpoints");
    const std::uint64_t epochs = run.loader.epochs;
    run.loader.epochs = 0;
    run.loader.iterations = iterations;
    train(ranks, run);
    run.loader.epochs = epochs;
    run.loader.iterations = 0;
    run.resume = true;
    train(ranks, run);
    std::filesystem::remove_all(run.checkpoint);
    return read(run.log);
  }

  test::TemporaryFolder dir_;
  std::string training_;
};

constexpr const char* kOrders[] = {"order=shuffled", "order=shuffled,keep=4",
                                   "order=grouped,group=8"};

TEST_F(TrainingOrders, AnEpochTrainsOnEverySampleOnce) {
  for (const std::string order : kOrders) {
    for (const int ranks : {1, 2, 5}) {
      const TrainReport report = train(ranks, options(order, 3));
      EXPECT_EQ(images(report), 3 * kSamples) << order << " on " << ranks;
      EXPECT_EQ(report.epochs, 3U);
      EXPECT_EQ(report.test->samples, kSamples);
    }
  }
  EXPECT_EQ(images(train(1, options("order=in_memory,memory-ratio=0.5,group=5", 2))), 2 * kSamples);
}

TEST_F(TrainingOrders, TheEndSaysWhatIsLeftOutAndWhatIsRepeated) {
  EXPECT_EQ(images(train(3, options("order=shuffled,end=drop", 2))), 2 * 49U);
  for (const std::string end : {"pad", "wrap"}) {
    const TrainReport report = train(3, options("order=shuffled,end=" + end, 2));
    EXPECT_EQ(images(report), 2 * 56U);
    EXPECT_EQ(report.loader.repeated, 2 * 6U);
  }
}

// On seven ranks six have nothing in the last batch: it must not weigh as much as a whole one.
TEST_F(TrainingOrders, ShortAndEmptySharesWeighWhatTheyHold) {
  const TrainOptions run = options("order=shuffled", 3);
  const TrainReport alone = train(1, run);
  for (const int ranks : {2, 3, 7}) {
    const TrainReport report = train(ranks, run);
    EXPECT_EQ(report.iterations, 3 * 8U);
    EXPECT_NEAR(report.loss, alone.loss, 1e-4);
    EXPECT_NEAR(report.test->loss, alone.test->loss, 1e-4);
  }
}

TEST_F(TrainingOrders, AllRanksHoldTheSameNumbersAtTheEnd) {
  for (const std::string order : kOrders) {
    for (const SolverKind solver : {SolverKind::sgd, SolverKind::adam}) {
      TrainOptions run = options(order, 2);
      run.solver.kind = solver;
      std::mutex mutex;
      std::vector<std::vector<float>> found;
      run_ranks(4, 2, [&](const std::shared_ptr<Communicator>& comm) {
        Network* network = nullptr;
        Trainer trainer(comm, run, [&](const NetworkOptions& options) {
          auto made = Quadrants::make(options);
          network = made.get();
          return made;
        });
        trainer.run();
        const std::lock_guard lock(mutex);
        found.emplace_back(network->parameters().begin(), network->parameters().end());
        for (const float value : network->statistics()) found.back().push_back(value);
      });
      EXPECT_THAT(found, testing::Each(found.front())) << order;
    }
  }
}

TEST_F(TrainingOrders, EpochsDiffer) {
  TrainOptions run = options("order=shuffled", 2);
  run.solver.rate = 1e-30;  // so that losses tell the samples of a batch
  run.log = dir_.file("log");
  train(1, run);
  const std::string log = read(run.log);
  const auto loss_of = [&log](int iteration) {
    const std::string start = "\"iteration\":" + std::to_string(iteration) + ",";
    return log.substr(log.find("loss", log.find(start)), 12);
  };
  EXPECT_NE(loss_of(1), loss_of(9));
}

TEST_F(TrainingOrders, ResumedEqualsStraightNumberByNumber) {
  for (const std::string order : kOrders) {
    for (const SolverKind solver : {SolverKind::sgd, SolverKind::adam}) {
      TrainOptions straight = options(order, 3);
      straight.solver.kind = solver;
      straight.log = dir_.file("straight.log");
      train(3, straight);
      // Within an epoch, at the end of one, and before its last batch.
      const auto steps = static_cast<std::uint64_t>(train(3, options(order, 1)).iterations);
      for (const std::uint64_t stop : {std::uint64_t{3}, steps, 2 * steps - 1}) {
        EXPECT_EQ(log_of_parts(straight, 3, stop), read(straight.log)) << order << " at " << stop;
      }
    }
  }
}

TEST_F(TrainingOrders, GoesOnWithOtherRanks) {
  for (const std::string order : kOrders) {
    TrainOptions run = options(order, 0);
    run.checkpoint = dir_.file("checkpoints-" + order);
    run.loader.iterations = 4;
    const std::uint64_t before = images(train(2, run));
    run.resume = true;
    run.loader.iterations = 0;
    run.loader.epochs = 2;
    const TrainReport report = train(5, run);
    EXPECT_EQ(before + images(report), 2 * kSamples) << order;
    EXPECT_EQ(report.epochs, 2U);
  }
}

TEST_F(TrainingOrders, ResumingWithAnotherSolverOrOrderIsRefused) {
  TrainOptions run = options("order=shuffled", 1);
  run.checkpoint = dir_.file("checkpoints");
  train(2, run);
  run.resume = true;
  run.loader.epochs = 2;
  TrainOptions other = run;
  other.solver.kind = SolverKind::adam;
  const auto message = [](const TrainOptions& options) -> std::string {
    try {
      train(1, options);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(message(other), HasSubstr("the solver sgd"));
  other = run;
  other.loader.order = OrderName::strided;
  EXPECT_THAT(message(other), HasSubstr("--order shuffled"));
  other = run;
  other.loader.seed = 4;
  EXPECT_THAT(message(other), HasSubstr("seed"));
}

}  // namespace
}  // namespace forebay
