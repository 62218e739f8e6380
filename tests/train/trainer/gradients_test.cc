// Training with every way to sum gradients: the numbers are those of `blocking`, whatever the order
// in which parts come, the size of transfers, and how many batches make an iteration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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

using test::failures;
using test::train;
using ::testing::HasSubstr;

constexpr std::uint64_t kSamples = 48;
constexpr double kTolerance = 1e-5;
constexpr const char* kInBackground[] = {"negotiate", "gs", "nbcs", "scp", "topo", "scp-topo"};

/// A network whose second backward pass on rank 1 ends in the middle.
class Broken final : public Quadrants {
 public:
  explicit Broken(bool breaks) : breaks_(breaks) {}
  void backward(const BackwardPass& pass) override {
    if (!breaks_ || ++passes_ < 2) return Quadrants::backward(pass);
    BackwardPass half = pass;
    half.ready = [&](std::size_t part) {
      if (pass.ready && part == 1) pass.ready(part);
    };
    Quadrants::backward(half);
    throw Error(ErrorKind::unsupported, "the second pass was too much");
  }

 private:
  bool breaks_;
  int passes_ = 0;
};

NetworkFactory broken_on_rank_1(int rank) {
  return [rank](const NetworkOptions&) { return std::make_unique<Broken>(rank == 1); };
}

class Gradients : public testing::Test {
 protected:
  Gradients() {
    training_ = test::LmdbBuilder().in_order(kSamples).values(17).build(dir_.file("train"));
  }

  TrainOptions options(const std::string& strategy, const std::string& loader = "batch=7") const {
    TrainOptions options;
    options.dataset = training_;
    options.test = training_;
    options.classes = 256;
    options.loader = LoaderOptions::parse("coalesce=1,stage-bytes=1MiB,codec=raw,seed=3," + loader);
    options.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.loader.epochs = 2;
    options.gradients.strategy = find_sync_way(strategy, gradient_ways());
    options.gradients.cycle = std::chrono::microseconds(200);
    return options;
  }

  /// The losses of all iterations.
  std::vector<double> curve(int ranks, const TrainOptions& options) const {
    return test::curve(ranks, options, dir_.file("log"));
  }

  static void expect_near(const std::vector<double>& mine, const std::vector<double>& expected,
                          const std::string& what) {
    ASSERT_EQ(mine.size(), expected.size()) << what;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      ASSERT_NEAR(mine[i], expected[i], kTolerance) << what << ", iteration " << i + 1;
    }
  }

  test::TemporaryFolder dir_;
  std::string training_;
};

TEST_F(Gradients, EveryStrategyGivesTheCurveOfBlocking) {
  for (const int ranks : {1, 2, 3}) {
    const auto expected = curve(ranks, options("blocking"));
    ASSERT_EQ(expected.size(), 14U);
    for (const char* strategy : kInBackground) {
      expect_near(curve(ranks, options(strategy)), expected, strategy);
    }
  }
}

TEST_F(Gradients, ShortAndEmptySharesCountForWhatTheyHold) {
  const std::string loader = "batch=20,order=shuffled,end=exact";  // 20, 20 and 8 over 9 ranks
  const auto expected = curve(9, options("blocking", loader));
  for (const char* strategy : {"negotiate", "topo"}) {
    expect_near(curve(9, options(strategy, loader)), expected, strategy);
  }
}

TEST_F(Gradients, TheFirstIterationShowsTheGraphToo) {
  TrainOptions run = options("topo");
  run.gradients.graph_given = false;
  expect_near(curve(3, run), curve(3, options("blocking")), "captured");
}

TEST_F(Gradients, SizesOfTransfersDoNotMatter) {
  const auto expected = curve(2, options("blocking"));
  for (const std::uint64_t bytes : {0U, 8U, 20U, 1U << 20}) {
    TrainOptions run = options("topo");
    run.gradients.fusion_bytes = bytes;
    expect_near(curve(2, run), expected, std::to_string(bytes));
  }
}

TEST_F(Gradients, RunsAreRepeatedDigitByDigit) {
  for (const char* strategy : {"negotiate", "topo"}) {
    EXPECT_EQ(curve(3, options(strategy)), curve(3, options(strategy))) << strategy;
  }
}

TEST_F(Gradients, ShortNumbersOnTheWireLeaveTheWeightExact) {
  const auto expected = curve(2, options("blocking"));
  TrainOptions run = options("topo");
  run.gradients.wire = WireFormat::bfloat16;
  const auto mine = curve(2, run);
  ASSERT_EQ(mine.size(), expected.size());
  EXPECT_FLOAT_EQ(static_cast<float>(mine[0]), static_cast<float>(expected[0]));
  for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_NEAR(mine[i], expected[i], 1e-2);
}

TEST_F(Gradients, SeveralBatchesAreAsGoodAsOneLargeOne) {
  TrainOptions parts = options("blocking", "batch=4");
  parts.accumulate = 3;
  const TrainOptions whole = options("blocking", "batch=12");
  for (const int ranks : {1, 2, 3}) {
    const auto expected = curve(ranks, whole);
    ASSERT_EQ(expected.size(), 8U);
    // Each batch of Quadrants draws noise of its own, up to 1e-4.
    for (const char* strategy : {"blocking", "topo"}) {
      parts.gradients.strategy = find_sync_way(strategy, gradient_ways());
      const auto mine = curve(ranks, parts);
      ASSERT_EQ(mine.size(), expected.size());
      for (std::size_t i = 0; i < mine.size(); ++i) EXPECT_NEAR(mine[i], expected[i], 3e-4);
    }
  }
}

TEST_F(Gradients, AnIterationEndsWithTheEpoch) {
  TrainOptions run = options("topo", "batch=10,order=shuffled,end=exact");
  run.accumulate = 3;  // batches of 10, 10, 10, 10 and 8
  const TrainReport report = train(3, run);
  EXPECT_EQ(report.iterations, 4U);
  EXPECT_EQ(report.epochs, 2U);
  std::uint64_t images = 0;
  for (const Breakdown& rank : report.ranks) images += rank.images;
  EXPECT_EQ(images, 2 * kSamples);
}

TEST_F(Gradients, IterationsOfSeveralBatchesAreCountedAsOne) {
  TrainOptions run = options("topo", "batch=4");
  run.loader.epochs = 0;
  run.loader.iterations = 6;
  run.accumulate = 5;
  EXPECT_EQ(train(2, run).iterations, 6U);
}

TEST_F(Gradients, AccumulatedResumedEqualsStraight) {
  TrainOptions straight = options("topo", "batch=4");
  straight.accumulate = 2;
  const auto expected = curve(2, straight);
  TrainOptions parts = straight;
  parts.checkpoint = dir_.file("checkpoints");
  parts.loader.epochs = 0;
  parts.loader.iterations = 5;
  auto losses = curve(2, parts);
  parts.loader.iterations = 0;
  parts.loader.epochs = 2;
  parts.resume = true;
  // The log of the first part goes on.
  EXPECT_EQ(curve(2, parts), expected);
  EXPECT_EQ(losses.size(), 5U);
}

TEST_F(Gradients, BatchesGrowAndGoOnAfterAResume) {
  TrainOptions run = options("topo", "batch=4");
  run.loader.epochs = 6;
  run.growth = {.threshold = 0.1, .limit = 4, .warmup = 3};  // Quadrants gains nothing
  const auto expected = curve(2, run);
  // 12, 12, then 6 and 3 iterations an epoch.
  EXPECT_EQ(expected.size(), 12U + 12 + 6 + 3 + 3 + 3);
  TrainOptions parts = run;
  parts.checkpoint = dir_.file("checkpoints");
  parts.loader.epochs = 3;
  curve(2, parts);
  parts.loader.epochs = 6;
  parts.resume = true;
  EXPECT_EQ(curve(2, parts), expected);
}

TEST_F(Gradients, ARankThatFailsInTheMiddleOfAPassEndsAllWithItsMessage) {
  for (const char* strategy : {"blocking", "negotiate", "topo"}) {
    for (const std::uint64_t batches : {1U, 3U}) {
      TrainOptions run = options(strategy);
      run.accumulate = batches;
      for (const std::string& message : failures(3, run, broken_on_rank_1)) {
        EXPECT_THAT(message, HasSubstr("too much")) << strategy;
        EXPECT_THAT(message, HasSubstr("rank 1")) << strategy;
      }
    }
  }
}

TEST_F(Gradients, ReportsTellWhatTheEngineDid) {
  const TrainReport report = train(2, options("topo"));
  ASSERT_EQ(report.sync.size(), 2U);
  EXPECT_EQ(report.sync_strategy.name, "topo");
  for (const GradientStatistics& rank : report.sync) {
    EXPECT_EQ(rank.bytes, 14U * 4 * sizeof(float));
    EXPECT_LE(rank.early_bytes, rank.bytes);
    EXPECT_GE(rank.engine.tensors, 14U * 3);
    EXPECT_EQ(rank.engine.fallbacks, 0U);
  }
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["sync"]["strategy"], "topo");
  EXPECT_EQ(json["sync"]["ranks"].size(), 2U);
  EXPECT_THAT(to_text(report), HasSubstr("overlap"));
}

TEST_F(Gradients, OneRankSumsNothingInTheBackground) {
  EXPECT_EQ(train(1, options("auto")).sync_strategy.name, "blocking");
  EXPECT_EQ(train(2, options("auto")).sync_strategy.name, "topo");
}

TEST(GradientStrategies, HaveNamesThatAreReadBack) {
  for (const char* name :
       {"auto", "blocking", "negotiate", "gs", "nbcs", "scp", "topo", "scp-topo", "servers"}) {
    EXPECT_EQ(to_string(find_sync_way(name, gradient_ways())), name);
  }
  EXPECT_THROW(find_sync_way("ring", gradient_ways()), Error);
  EXPECT_EQ(parse_wire_format("none"), WireFormat::as_is);
  EXPECT_EQ(parse_wire_format("float16"), WireFormat::float16);
  EXPECT_EQ(parse_wire_format("bfloat16"), WireFormat::bfloat16);
  EXPECT_THROW(parse_wire_format("int8"), Error);
}

}  // namespace
}  // namespace forebay
