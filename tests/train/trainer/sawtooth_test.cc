// Batches that grow with each pass over the data in memory, and fall back when it is filled anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "forebay/communicator.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/quadrants.hpp"
#include "train/trainer.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSamples = 48;
constexpr std::uint64_t kEpochs = 2;

/// How often each sample was learned from, told apart by its pixels.
class Uses {
 public:
  void count(const TrainingBatch& batch) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = elements_of(batch.shape);
    for (std::size_t i = 0; i < batch.count; ++i) {
      const auto pixels = batch.inputs.subspan(i * size, size);
      ++times_[std::vector<std::byte>(pixels.begin(), pixels.end())];
    }
  }
  const std::map<std::vector<std::byte>, std::uint64_t>& times() const { return times_; }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::byte>, std::uint64_t> times_;
};

class Counting final : public Quadrants {
 public:
  explicit Counting(Uses& uses) : uses_(uses) {}
  float forward(const TrainingBatch& batch, std::uint64_t noise) override {
    uses_.count(batch);
    return Quadrants::forward(batch, noise);
  }

 private:
  Uses& uses_;
};

class Sawtooth : public testing::Test {
 protected:
  Sawtooth() {
    training_ = test::LmdbBuilder().in_order(kSamples).values(17).build(dir_.file("train"));
  }

  TrainOptions options(const std::string& loader) const {
    TrainOptions options;
    options.dataset = training_;
    options.classes = 256;
    options.loader = LoaderOptions::parse("stage-bytes=4MiB,codec=raw,seed=3," + loader);
    options.loader.schema = "image:u8[1x4x4],label:u8[]";
    options.loader.epochs = kEpochs;
    options.solver.rate = 1;
    options.log = dir_.file("log");
    options.growth = {.reused = 0.5, .warmup = 0};
    return options;
  }

  void train(int ranks, const TrainOptions& options) {
    run_ranks(ranks, 2, [&](const std::shared_ptr<Communicator>& comm) {
      Trainer(comm, options, [&](const NetworkOptions&) {
        return std::make_unique<Counting>(uses_);
      }).run();
    });
  }

  /// The learning rates of all iterations, which are their batches where there is no warm-up; and
  /// the batches that the log tells of.
  std::vector<double> rates(const TrainOptions& options) const {
    std::vector<double> rates;
    std::ifstream in(options.log);
    for (std::string line; std::getline(in, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json["event"] == "iteration") rates.push_back(json["learning_rate"].get<double>());
    }
    return rates;
  }

  /// What rates() has to be, worked out from the order alone.
  static std::vector<double> expected_rates(int ranks, const TrainOptions& options) {
    const LoaderOptions& loader = options.loader;
    OrderOptions order = loader;
    order.entries = kSamples;
    order.ranks = ranks;
    std::vector<double> taken;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const EpochOrder one(order, epoch);
      for (std::uint64_t begin = 0, end = 0; begin < one.steps(); begin = end) {
        const std::uint64_t pass = one.pass(begin);
        const std::uint64_t most = sawtooth_factor(options.growth, pass % loader.reuse);
        while (end < one.steps() && end - begin < most && one.pass(end) == pass) ++end;
        taken.push_back(static_cast<double>(end - begin));
      }
    }
    return taken;
  }

  void expect_used(std::uint64_t times) const {
    EXPECT_EQ(uses_.times().size(), kSamples);
    for (const auto& [pixels, count] : uses_.times()) ASSERT_EQ(count, times);
  }

  test::TemporaryFolder dir_;
  std::string training_;
  Uses uses_;
};

TEST_F(Sawtooth, BatchesDoubleWithEachPassAndFallBack) {
  // A window of 4 batches: 4 iterations, 2 and 1.
  TrainOptions run = options("batch=4,order=shuffled,reuse=3,window=4");
  train(2, run);
  std::vector<double> expected;
  for (int window = 0; window < 6; ++window) {
    for (const double batches : {1, 1, 1, 1, 2, 2, 4}) expected.push_back(batches);
  }
  EXPECT_EQ(rates(run), expected);
  EXPECT_EQ(expected_rates(2, run), expected);
  expect_used(3 * kEpochs);
}

TEST_F(Sawtooth, AnyOrderIsCutAtThePassesAndResumesInTheMiddle) {
  const std::string orders[] = {"order=shuffled,window=3", "order=grouped,group=6",
                                "order=in_memory,memory-ratio=0.4,reuse-scope=global",
                                "order=shuffled,window=2,reuse-scope=global"};
  for (int seed = 0; seed < test::long_cases(8); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto pick = [&random](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    const int ranks = pick(1, 3);
    TrainOptions run = options(orders[seed % 4] + ",batch=" + std::to_string(ranks * pick(1, 3)) +
                               ",reuse=" + std::to_string(pick(2, 5)));
    SCOPED_TRACE(run.loader.to_text());
    run.growth.reused = pick(0, 1) == 0 ? 0.5 : 0.7;
    run.growth.limit = static_cast<std::uint64_t>(pick(1, 8));
    const auto expected = expected_rates(ranks, run);
    run.checkpoint = dir_.file("checkpoints" + std::to_string(seed));
    run.log = dir_.file("log" + std::to_string(seed));
    TrainOptions first = run;
    first.loader.iterations =
        static_cast<std::uint64_t>(pick(1, static_cast<int>(expected.size()) - 1));
    train(ranks, first);
    run.resume = true;
    train(ranks, run);
    ASSERT_EQ(rates(run), expected) << "stopped after " << first.loader.iterations;
  }
}

TEST_F(Sawtooth, AStopInTheMiddleRepeatsAndLosesNothing) {
  TrainOptions run = options("batch=6,order=in_memory,memory-ratio=0.5,reuse=3,reuse-scope=global");
  run.checkpoint = dir_.file("checkpoints");
  TrainOptions first = run;
  first.loader.iterations = 7;
  train(2, first);
  run.resume = true;
  train(3, run);  // which gets the rest of the epoch dealt anew
  expect_used(3 * kEpochs);
}

TEST_F(Sawtooth, IsRefusedWhereItMeansNothing) {
  const auto refusal = [this](const TrainOptions& options) -> std::string {
    try {
      train(1, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal(options("batch=4,order=shuffled")), HasSubstr("--reuse"));
  TrainOptions servers = options("batch=4,order=shuffled,reuse=2");
  servers.gradients.strategy = find_sync_way("servers");
  EXPECT_THAT(refusal(servers), HasSubstr("--sync"));
  TrainOptions shard = options("batch=4,order=shuffled,shard=0/2,reuse=2");
  EXPECT_THAT(refusal(shard), HasSubstr("shard"));
  EXPECT_THROW((GrowthOptions{.threshold = 0.1, .reused = 0.5}.validate()), Error);
  for (const double wrong : {0.0, 1.0, -1.0, 2.0}) {
    EXPECT_THROW(GrowthOptions{.reused = wrong}.validate(), Error);
  }
}

TEST(SawtoothFactor, CountsThePassesThatReuseEnough) {
  const auto factors = [](double reused, std::uint64_t limit) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t pass = 0; pass < 5; ++pass) {
      all.push_back(sawtooth_factor({.reused = reused, .limit = limit}, pass));
    }
    return all;
  };
  EXPECT_EQ(factors(0.5, 16), (std::vector<std::uint64_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(factors(0.6, 16), (std::vector<std::uint64_t>{1, 1, 2, 4, 8}));
  EXPECT_EQ(factors(0.75, 16), (std::vector<std::uint64_t>{1, 1, 1, 2, 4}));
  EXPECT_EQ(factors(0.5, 4), (std::vector<std::uint64_t>{1, 2, 4, 4, 4}));
  EXPECT_EQ(factors(0.5, 1), (std::vector<std::uint64_t>{1, 1, 1, 1, 1}));
}

TEST(SawtoothFactor, TheRateClimbsAndFallsAtOnce) {
  const GrowthOptions options{.reused = 0.5, .limit = 8, .warmup = 4};
  GrowthState state;
  EXPECT_FALSE(take_pass(state, options, 0, 10));
  EXPECT_TRUE(take_pass(state, options, 1, 20));
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 20, 1), 1);
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 22, 1), 1.5);
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 24, 1), 2);
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 24, 0.75), 1.5);
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 24, 0.25), 1) << "what the first batch has";
  EXPECT_TRUE(take_pass(state, options, 0, 25));
  EXPECT_DOUBLE_EQ(rate_factor(state, options, 25, 1), 1);
}

}  // namespace
}  // namespace forebay
