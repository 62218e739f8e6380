// The whole training loop, with ranks as threads and a network that needs no LibTorch.
#include "train/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "tests/train/trainer/training_runs.hpp"

namespace forebay {
namespace {

using test::failures;
using test::train;
using ::testing::HasSubstr;

constexpr std::uint64_t kTrainingSamples = 50;
constexpr std::uint64_t kTestSamples = 23;

class Training : public testing::Test {
 protected:
  Training() {
    // 4x4 pixels and one byte of label.
    training_ =
        test::LmdbBuilder().random_order(kTrainingSamples).values(17).build(dir_.file("train"));
    test_ = test::LmdbBuilder().in_order(kTestSamples).values(17).seed(5).build(dir_.file("test"));
  }

  TrainOptions options(std::uint64_t epochs) const {
    TrainOptions options;
    options.dataset = training_;
    options.test = test_;
    options.classes = 256;
    options.loader.batch = 7;
    options.loader.epochs = epochs;
    options.loader.codec = "raw";
    options.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.loader.stage_bytes = 1 << 20;
    return options;
  }

  static std::string log_of(const TrainOptions& options) {
    std::ifstream in(options.log);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::TemporaryFolder dir_;
  std::string training_;
  std::string test_;
};

TEST_F(Training, LogsEveryIterationAndEpoch) {
  TrainOptions run = options(2);
  run.log = dir_.file("log");
  const TrainReport report = train(3, run);
  EXPECT_EQ(report.iterations, 15U);  // ceil(2 * 50 / 7)
  EXPECT_EQ(report.epochs, 2U);
  EXPECT_EQ(report.ranks.size(), 3U);
  const std::string log = log_of(run);
  EXPECT_EQ(std::ranges::count(log, '\n'), 15 + 2);
  EXPECT_THAT(log, HasSubstr(R"({"event":"iteration","iteration":15,"epoch":1,"loss":)"));
  EXPECT_THAT(log, HasSubstr(R"({"event":"epoch","epoch":1,"iteration":8,)"));
}

// Made longer at the end of an epoch where a batch and a window end as well: else the limit has
// shaped the last ones.
TEST_F(Training, ResumedEqualsStraightNumberByNumber) {
  TrainOptions straight = options(3);
  straight.loader.batch = 10;
  straight.loader.coalesce = 1;
  straight.log = dir_.file("straight.log");
  train(3, straight);

  TrainOptions halves = straight;
  halves.loader.epochs = 1;
  halves.log = dir_.file("halves.log");
  halves.checkpoint = dir_.file("checkpoints");
  train(3, halves);
  halves.loader.epochs = 3;
  halves.resume = true;
  const TrainReport report = train(3, halves);
  EXPECT_EQ(log_of(straight), log_of(halves));
  EXPECT_EQ(report.epochs, 3U);
}

TEST_F(Training, ResumedWithinAnEpochEqualsStraightNumberByNumber) {
  TrainOptions straight = options(2);
  straight.log = dir_.file("straight.log");
  train(2, straight);

  TrainOptions parts = options(0);
  parts.loader.iterations = 11;
  parts.log = dir_.file("parts.log");
  parts.checkpoint = dir_.file("checkpoints");
  train(2, parts);
  parts.loader.iterations = 0;
  parts.loader.epochs = 2;
  parts.resume = true;
  train(2, parts);
  EXPECT_EQ(log_of(straight), log_of(parts));
}

TEST_F(Training, EveryStrategyGivesTheSameNumbers) {
  TrainOptions baseline = options(2);
  baseline.log = dir_.file("lmdb.log");
  baseline.loader.strategy = Strategy::lmdb;
  train(4, baseline);
  TrainOptions localized = options(2);
  localized.log = dir_.file("lmm.log");
  localized.loader.strategy = Strategy::lmm;
  localized.loader.roots = 2;
  train(4, localized);
  EXPECT_EQ(log_of(baseline), log_of(localized));
}

TEST_F(Training, HardlyDependsOnTheNumberOfRanks) {
  TrainOptions run = options(3);
  run.loader.coalesce = 1;  // else the samples of a batch depend on the ranks and on their memory
  const double alone = train(1, run).loss;
  for (const int ranks : {2, 4, 7}) EXPECT_NEAR(train(ranks, run).loss, alone, 1e-4);
}

TEST_F(Training, TestsCountEverySampleOnce) {
  std::uint64_t even = 0;
  for (const auto& record : test::read_with_liblmdb(test_)) {
    even += static_cast<unsigned char>(record.value.back()) % 2 == 0 ? 1U : 0U;
  }
  for (const int ranks : {1, 3, 7}) {
    for (const std::uint64_t epochs : {1U, 2U, 3U}) {
      const TrainReport report = train(ranks, options(epochs));
      ASSERT_TRUE(report.test);
      EXPECT_EQ(report.test->samples, kTestSamples);
      EXPECT_DOUBLE_EQ(report.test->accuracy.value(), static_cast<double>(even) / kTestSamples);
    }
  }
}

TEST_F(Training, TestsAlsoWhereTheTrainingSetIsHeldInMemory) {
  TrainOptions run = options(1);
  run.loader.order = OrderName::shuffled;
  run.loader.hold = Hold::memory;
  run.loader.end = OrderEnd::drop;
  EXPECT_EQ(train(2, run).test->samples, kTestSamples);
}

TEST_F(Training, WorksWithoutATestSet) {
  TrainOptions run = options(1);
  run.test.clear();
  EXPECT_FALSE(train(2, run).test);
}

TEST_F(Training, LabelOutsideTheClassesFailsOnAllRanksNamingSampleAndKey) {
  TrainOptions run = options(1);
  run.classes = 100;
  for (const std::string& message : failures(3, run)) {
    EXPECT_THAT(message, HasSubstr("none of the network's 100 classes"));
    EXPECT_THAT(message, HasSubstr("sample "));
    EXPECT_THAT(message, HasSubstr("key "));
    EXPECT_THAT(message, HasSubstr(training_));
  }
}

TEST_F(Training, DataWithoutImagesAreRefused) {
  TrainOptions run = options(1);
  run.loader.schema = "image:u8[17]";
  for (const std::string& message : failures(2, run)) EXPECT_THAT(message, HasSubstr("label"));
  run.loader.codec = "bytes";
  run.loader.schema.clear();
  failures(2, run);
}

TEST_F(Training, MissingDataSetsFailOnAllRanks) {
  TrainOptions run = options(1);
  run.dataset = dir_.file("missing");
  for (const std::string& message : failures(3, run)) EXPECT_THAT(message, HasSubstr("missing"));
  run = options(1);
  run.test = dir_.file("missing");
  for (const std::string& message : failures(3, run)) EXPECT_THAT(message, HasSubstr("missing"));
}

TEST_F(Training, DivergenceEndsTheRun) {
  TrainOptions run = options(20);
  run.solver.rate = 1e30;
  for (const std::string& message : failures(2, run)) {
    EXPECT_THAT(message, HasSubstr("diverged"));
    EXPECT_THAT(message, HasSubstr("--lr"));
  }
}

TEST_F(Training, UnwritableCheckpointsFailOnAllRanks) {
  TrainOptions run = options(2);
  run.checkpoint = training_ + "/data.mdb/below";
  for (const std::string& message : failures(3, run)) EXPECT_THAT(message, HasSubstr("below"));
}

TEST_F(Training, ResumingAnotherRunIsRefused) {
  TrainOptions run = options(1);
  run.checkpoint = dir_.file("checkpoints");
  train(2, run);
  run.resume = true;
  TrainOptions other = run;
  other.seed = 9;
  for (const std::string& message : failures(2, other)) EXPECT_THAT(message, HasSubstr("seed"));
  other = run;
  other.dataset = test_;
  failures(2, other);
  other = run;
  other.net = "caffenet";
  for (const std::string& message : failures(2, other)) EXPECT_THAT(message, HasSubstr("lenet"));
  other = run;
  other.checkpoint = dir_.file("none");
  for (const std::string& message : failures(2, other)) EXPECT_THAT(message, HasSubstr("none"));
}

TEST_F(Training, GoesOnWithMoreRanks) {
  TrainOptions run = options(1);
  run.checkpoint = dir_.file("checkpoints");
  train(2, run);
  run.resume = true;
  run.loader.epochs = 2;
  const TrainReport report = train(3, run);
  EXPECT_EQ(report.epochs, 2U);
  EXPECT_EQ(report.iterations, 16U)
      << "8 for each epoch: the first run has ended with a short batch";
}

TEST_F(Training, LearnsFromEverySampleOfEveryEpochOnce) {
  const auto images = [](const TrainReport& report) {
    std::uint64_t sum = 0;
    for (const Breakdown& rank : report.ranks) sum += rank.images;
    return sum;
  };
  for (const int ranks : {1, 3, 5}) {
    TrainOptions run = options(3);
    EXPECT_EQ(images(train(ranks, run)), 3 * kTrainingSamples);
    run.loader.end = OrderEnd::drop;
    EXPECT_EQ(images(train(ranks, run)), 3 * kTrainingSamples / 7 * 7);
  }
}

TEST_F(Training, WritesATimeline) {
  TrainOptions run = options(1);
  run.trace = dir_.file("trace.json");
  train(2, run);
  std::ifstream in(run.trace);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  for (const char* name : {"forward", "backward", "parameter sync", "update", "test"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

}  // namespace
}  // namespace forebay
