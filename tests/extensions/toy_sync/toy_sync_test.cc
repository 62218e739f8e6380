// A row that a program adds to the table of ways to synchronize is all that trainings, emulations
// and engines need: the command line of `forebay train` takes its name and shows its help.
#include "tests/extensions/toy_sync/toy_sync.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/command/emulation/emulated_training.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/sync_contract.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/train/trainer/training_runs.hpp"
#include "train/command_line.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

class ToySync : public testing::Test {
 protected:
  ToySync() { data_ = test::LmdbBuilder().in_order(48).values(17).build(dir_.file("d")); }

  /// As `forebay train DATA --sync SYNC ...` has it, where the program knows the toy.
  TrainOptions options(const std::string& sync) const {
    TrainFlags flags;
    flags.ways.push_back(toy::leader_way());
    CLI::App command;
    add_train_flags(command, flags);
    EXPECT_THAT(command.help(), HasSubstr("leader (in the order of rank 0)"));
    command.parse("--sync " + sync + " --batch 7 --classes 256 --epochs 2 --coalesce 1 " +
                  "--schema image:u8[1x4x4],label:u8[] " + data_);
    return complete(flags);
  }

  std::vector<double> curve(int ranks, const std::string& sync) const {
    return test::curve(ranks, options(sync), dir_.file("log"));
  }

  test::TemporaryFolder dir_;
  std::string data_;
};

TEST_F(ToySync, TrainsAsOthersDo) {
  for (const int ranks : {1, 2, 3}) {
    const auto expected = curve(ranks, "blocking");
    ASSERT_FALSE(expected.empty());
    for (const char* sync : {"leader", "scp-leader"}) {
      const auto losses = curve(ranks, sync);
      ASSERT_EQ(losses.size(), expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) ASSERT_NEAR(losses[i], expected[i], 1e-5);
    }
  }
}

TEST_F(ToySync, IsNamedInReportsAndRefusals) {
  const TrainReport report = test::train(2, options("scp-leader"));
  EXPECT_EQ(to_string(report.sync_strategy), "scp-leader");
  EXPECT_THAT(report.sync_explanation, HasSubstr("leader: in the order of rank 0"));
  EXPECT_EQ(report.sync.at(0).engine.negotiations, 0U);
  try {
    options("follower");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("leader"));
  }
}

TEST_F(ToySync, SumsForAnEngineAndAnEmulation) {
  run_ranks(3, 2, [&](const auto& comm) {
    SyncEngine engine(comm, {.strategy = toy::leader_way()});
    auto sums = test::sums_of_all_kinds(3000);
    for (int step = 0; step < 3; ++step) {
      for (auto& sum : sums) sum.start(engine, comm->rank(), step, step % 2 == 1);
      for (auto& sum : sums) sum.expect(step, 3, 3);
    }
    engine.close();

    nets::TrainingStep step = nets::make_step(nets::make_net("alexnet"), 2, {.scale = 0.2});
    nets::shrink_gradients(step, 10'000);
    emulation::Gradients gradients(step);
    const auto sync =
        emulation::make_gradient_sum(comm, step, gradients, {.way = toy::leader_way()}, {});
    emulation::TrainingOptions options{.steps = 3, .warmup = 1};
    options.feed.input = emulation::Input::none;
    options.feed.batch = 2;
    options.feed.side = 32;
    EXPECT_GT(emulation::run_training(comm, step, *sync, gradients, options, {}).seconds, 0);
  });
}

}  // namespace
}  // namespace forebay
