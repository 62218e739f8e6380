#include "bench/command/emulation/emulated_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forebay/error.hpp"

namespace forebay::emulation {
namespace {

using ::testing::HasSubstr;

/// A network of a few kernels, at a fraction of its size.
nets::TrainingStep small_step() {
  nets::TrainingStep step = nets::make_step(nets::make_net("alexnet"), 2, {.scale = 0.2});
  nets::shrink_gradients(step, 10'000);
  return step;
}

TrainingOptions short_training() {
  TrainingOptions options{.steps = 3, .warmup = 1};
  options.feed.batch = 2;
  options.feed.side = 32;
  options.feed.files = 2;
  return options;
}

void train_with(const std::string& way, int ranks, bool capture) {
  const nets::TrainingStep step = small_step();
  run_ranks(ranks, 0, [&](const std::shared_ptr<Communicator>& comm) {
    Gradients gradients(step);
    const SyncSetup setup{.way = find_sync_way(way, emulated_ways()),
                          .engine = {.cycle = std::chrono::milliseconds(1),
                                     .stall_limit = std::chrono::milliseconds(60'000)},
                          .capture = capture};
    const CorePlan cores =
        plan_cores(*comm, setup.way.own_cores ? "partition" : "shared", {.io = 0});
    const auto sync = make_gradient_sum(comm, step, gradients, setup, cores);
    const TrainingFigures figures =
        run_training(comm, step, *sync, gradients, short_training(), cores);
    EXPECT_GT(figures.seconds, 0);
    EXPECT_GE(figures.exposed_seconds, 0);
    EXPECT_LE(figures.exposed_seconds, figures.seconds);
    EXPECT_FALSE(sync->explain().empty());
  });
}

TEST(EmulatedTraining, SumsGradientsInEveryWay) {
  for (const char* way : {"blocking", "negotiate", "gs", "nbcs", "topo", "scp", "scp-topo"}) {
    train_with(way, 2, false);
  }
  train_with("scp-topo", 1, false);
  train_with("gs", 3, false);
  train_with("topo", 2, true);
}

TEST(EmulatedTraining, TheStepTakesAtLeastTheDevicesTime) {
  const nets::TrainingStep step = small_step();
  const auto comm = self_communicator();
  Gradients gradients(step);
  const auto sync =
      make_gradient_sum(comm, step, gradients, {.way = find_sync_way("blocking")}, {});
  const TrainingFigures figures = run_training(comm, step, *sync, gradients, short_training(), {});
  EXPECT_GE(figures.seconds, 3 * std::chrono::duration<double>(step.device_time()).count());
}

TEST(Gradients, TellWhetherTheyWereSummed) {
  Gradients gradients(small_step());
  gradients.fill(2);
  EXPECT_THROW(gradients.require_mean(4), Error);
  gradients.require_mean(5);
  gradients.all()[7] = 2;
  EXPECT_THROW(gradients.require_mean(5), Error);
}

TEST(SyncWay, ReadsStrategiesWithAndWithoutCoresOfTheirOwn) {
  EXPECT_FALSE(find_sync_way("blocking").agree);
  EXPECT_EQ(find_sync_way("scp").name, "negotiate");
  EXPECT_TRUE(find_sync_way("scp").own_cores);
  EXPECT_EQ(find_sync_way("scp-topo").name, "topo");
  EXPECT_TRUE(find_sync_way("scp-blocking").own_cores);
  EXPECT_FALSE(find_sync_way("nbcs").own_cores);
  for (const char* text : {"", "scp-", "scp-scp", "ring", "topo-scp"}) {
    try {
      find_sync_way(text, emulated_ways());
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("no way to sum"));
    }
  }
}

}  // namespace
}  // namespace forebay::emulation
