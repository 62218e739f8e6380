// Training on numbers instead of labels, with a network that needs no LibTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "format/lmdb/writer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/mean_of_targets.hpp"
#include "tests/train/trainer/training_runs.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kSamples = 20;

/// Sample i: x = (i, i, i), y = (i, -1).
std::array<float, 5> numbers_of(std::size_t i) {
  const auto number = static_cast<float>(i);
  return {number, number, number, number, -1};
}

TrainReport train(int ranks, const TrainOptions& options) {
  return test::train(ranks, options, MeanOfTargets::make);
}

class Regression : public testing::Test {
 protected:
  Regression() {
    lmdb::Writer writer(dir_.file("series"), {.sync = false});
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::string key = fmt::format("{:08}", i);
      const auto numbers = numbers_of(i);
      writer.put(std::as_bytes(std::span(key)), std::as_bytes(std::span(numbers)));
    }
    writer.commit();
  }

  TrainOptions options(const std::string& schema = "x:f32[1x3],y:f32[2]") const {
    TrainOptions run;
    run.net = "neuron";
    run.dataset = dir_.file("series");
    run.loader = LoaderOptions::parse("batch=6,stage-bytes=1MiB,codec=raw,order=shuffled,epochs=2");
    run.loader.schema = schema;
    return run;
  }

  static std::string failure(int ranks, const TrainOptions& options) {
    try {
      train(ranks, options);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  test::TemporaryFolder dir_;
};

TEST_F(Regression, FindsItsFieldsByUsualNamesByGivenOnesAndByPosition) {
  TrainOptions given = options("a:f32[1x3],b:f32[1],c:f32[1]");
  given.target = "b";
  given.input = "a";
  TrainOptions reversed = options("p:f32[1x3],q:f32[2]");
  reversed.input = "q";
  reversed.target = "p";
  const auto sizes = [](const TrainOptions& run) {
    NetworkOptions found;
    test::train(1, run, [&found](const NetworkOptions& options) {
      found = options;
      return MeanOfTargets::make(options);
    });
    return std::pair(found.input, found.outputs);
  };
  EXPECT_EQ(sizes(options("x:f32[1x3],y:f32[2]")), std::pair(Shape({1, 3}), std::uint64_t{2}));
  EXPECT_EQ(sizes(options("y:f32[2],x:f32[1x3]")), std::pair(Shape({1, 3}), std::uint64_t{2}));
  EXPECT_EQ(sizes(options("3Dmap:f32[1x3],unitPar:f32[2]")),
            std::pair(Shape({1, 3}), std::uint64_t{2}));
  EXPECT_EQ(sizes(given), std::pair(Shape({1, 3}), std::uint64_t{1}));
  EXPECT_EQ(sizes(reversed), std::pair(Shape({2}), std::uint64_t{3}));
}

TEST_F(Regression, RefusesDataWithoutNumbersToLearn) {
  EXPECT_THAT(failure(2, options("x:f32[5]")), HasSubstr("no field 'y'"));
  EXPECT_THAT(failure(2, options("x:f32[3],y:u8[8]")), HasSubstr("f32 or f64"));
  EXPECT_THAT(failure(2, options("y:f32[2],z:f32[2],w:f32[1]")), HasSubstr("--input"));
  TrainOptions twice = options();
  twice.target = "x";
  EXPECT_THAT(failure(1, twice), HasSubstr("input and target"));
}

TEST_F(Regression, LearnsTheMeanOfTheTargetsInEveryOrder) {
  for (const char* order : {"strided", "shuffled", "grouped"}) {
    TrainOptions run = options();
    run.loader.set("order", order);
    if (run.loader.order == OrderName::grouped) run.loader.group = 4;
    run.loader.epochs = 60;
    run.solver = {.kind = SolverKind::adam,
                  .rate = 1,
                  .policy = RatePolicy::epochs,
                  .drops = {30, 45},
                  .weight_decay = 0};
    run.test = run.dataset;
    const TrainReport report = train(2, run);
    // Variance of 0..19, and none of the second target, over two outputs.
    const double least = (kSamples * kSamples - 1) / 12.0 / 2;
    ASSERT_TRUE(report.test);
    EXPECT_NEAR(report.test->loss, least, 0.1) << order;
    EXPECT_FALSE(report.test->accuracy);
    EXPECT_EQ(report.test->samples, kSamples);
  }
}

TEST_F(Regression, TargetsMayBeDoubles) {
  lmdb::Writer writer(dir_.file("doubles"), {.sync = false});
  const struct {
    std::array<float, 2> x;
    double y;
  } sample{{1, 2}, 0.5};
  writer.put(std::as_bytes(std::span("1", 1)), std::as_bytes(std::span(&sample, 1)));
  writer.commit();
  TrainOptions run = options("x:f32[1x2],y:f64[]");
  run.dataset = run.test = dir_.file("doubles");
  run.solver.rate = 1e-30;
  EXPECT_NEAR(train(1, run).test->loss, 0.25, 1e-6);
}

TEST_F(Regression, ReportsNoAccuracy) {
  TrainOptions run = options();
  run.test = run.dataset;
  run.log = dir_.file("log");
  train(2, run);
  std::ifstream in(run.log);
  const std::string log{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(log, HasSubstr("test_loss"));
  EXPECT_THAT(log, testing::Not(HasSubstr("test_accuracy")));
}

}  // namespace
}  // namespace forebay
