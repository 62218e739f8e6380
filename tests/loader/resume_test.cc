// Runs that stop inside a coalesced window and go on with other ranks, nodes and batches: every
// strategy delivers what is left, nothing twice, and knows what each sample is.
// (forebay::Run is spelled out: a test body also knows testing::Test::Run.)
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <random>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kEntries = 100;
constexpr std::uint64_t kCoalesce = 4;

class Resume : public testing::Test {
 protected:
  Resume()
      : path_(
            test::LmdbBuilder().random_order(kEntries).values(0, 6000).build(folder_.file("data"))),
        records_(test::read_with_liblmdb(path_)) {}

  /// Goes on from `state_`, or starts, and reads to the end of `options`, or so many batches.
  void stretch(int ranks, int ranks_per_node, LoaderOptions options, int most_batches = INT_MAX) {
    const std::string before = state_;
    if (!before.empty()) options = resume_options(before, options, ranks);
    run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, path_, options);
      for (int i = 0; i < most_batches; ++i) {
        const auto batch = loader.next();
        if (!batch) break;
        check(loader.order(), comm->rank(), *batch);
      }
      comm->barrier();
      if (comm->rank() == 0) state_ = loader.state();
    });
  }

  void check(const StridedOrder& order, int rank, const Batch& batch) {
    const forebay::Run run = order.run(rank, batch.iteration());
    ASSERT_EQ(batch.samples().size(), run.count);
    for (const Sample& sample : batch.samples()) {
      ASSERT_EQ(sample.global, order.global(run.first + sample.position));
      ASSERT_EQ(sample.id, sample.global % kEntries);
      ASSERT_EQ(test::text(sample.key), records_[sample.id].key);
      ASSERT_EQ(test::text(sample.value), records_[sample.id].value);
      ASSERT_EQ(sample.repeat, order.repeats(run.first + sample.position));
      if (sample.repeat) continue;
      const std::lock_guard lock(mutex_);
      ++times_[sample.global];
    }
  }

  test::TemporaryFolder folder_;
  std::string path_;
  std::vector<test::OracleRecord> records_;
  std::mutex mutex_;
  std::map<std::uint64_t, int> times_;  ///< how often each global position was delivered
  std::string state_;
};

TEST_F(Resume, NoStrategyRepeatsOrLosesWhatAWindowOfOtherRanksHasLeft) {
  for (const Strategy strategy :
       {Strategy::automatic, Strategy::lmdb, Strategy::lmm, Strategy::lmm_dm, Strategy::lmm_dio,
        Strategy::lmm_dio_prov, Strategy::lmm_dio_prov_coal, Strategy::lmm_dio_prov_coal_stag}) {
    for (const int ranks_per_node : {0, 1, 2}) {
      SCOPED_TRACE(std::string(to_string(strategy)) + ", " + std::to_string(ranks_per_node));
      times_.clear();
      state_.clear();
      LoaderOptions options(OrderOptions{.batch = 7, .coalesce = kCoalesce});
      options.strategy = strategy;
      options.stage_bytes = std::uint64_t{16} << 20;
      options.roots = ranks_per_node == 1 ? 1 : 2;
      options.gap_bytes = ranks_per_node == 2 ? 0 : options.gap_bytes;
      options.iterations = 6;
      stretch(2, ranks_per_node, options);
      options.batch = 10;
      options.iterations = 3;
      stretch(5, ranks_per_node, options);  // inside what the first has left
      options.iterations = 5;
      stretch(5, ranks_per_node, options);  // goes on identically
      options.batch = 9;
      options.iterations = 0;
      options.epochs = 3;
      stretch(3, ranks_per_node, options);
      for (std::uint64_t global = 0; global < 3 * kEntries; ++global) {
        ASSERT_EQ(times_[global], 1) << "position " << global;
      }
      EXPECT_TRUE(std::ranges::all_of(times_, [](const auto& one) { return one.second == 1; }));
    }
  }
}

TEST_F(Resume, AnyStopsWithAnyKnobsRepeatAndLoseNothing) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(test::long_cases(12)); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&random](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    times_.clear();
    state_.clear();
    for (int left = pick(1, 5); left >= 0; --left) {
      const int ranks = pick(1, 4);
      // Never the batch of the stretch before, whose iterations would count on.
      LoaderOptions options(
          OrderOptions{.batch = static_cast<std::uint64_t>(2 * pick(ranks, 10) + left % 2)});
      if (state_.empty()) options.coalesce = static_cast<std::uint64_t>(pick(0, 8));
      options.strategy = static_cast<Strategy>(pick(0, 7));
      options.buffers = pick(1, 3);
      options.roots = pick(0, 2);
      options.stagger = pick(-1, 2);
      options.stage_bytes = std::uint64_t{16} << 20;
      options.iterations = left > 0 ? static_cast<std::uint64_t>(pick(1, 6)) : 0;
      options.epochs = left > 0 ? 0 : 10;
      stretch(ranks, pick(0, 2), options);
    }
    for (std::uint64_t global = 0; global < 10 * kEntries; ++global) {
      ASSERT_EQ(times_[global], 1) << "position " << global;
    }
    EXPECT_TRUE(std::ranges::all_of(times_, [](const auto& one) { return one.second == 1; }));
  }
}

constexpr OrderEnd kEnds[] = {OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap, OrderEnd::exact};

TEST_F(Resume, EveryStrategyDeliversEveryEndOfWholeEpochs) {
  for (int strategy = 0; strategy < 8; ++strategy) {
    for (const OrderEnd end : kEnds) {
      for (const std::uint64_t batch : {7, 96, 350}) {
        const int ranks = 1 + (strategy + static_cast<int>(batch)) % 4;
        LoaderOptions options(OrderOptions{.batch = batch, .coalesce = kCoalesce},
                              RunOptions{.epochs = 2});
        if (end == OrderEnd::drop && batch > 2 * kEntries) options.epochs = 5;
        SCOPED_TRACE(std::to_string(strategy) + ", " + std::string(to_string(end)) + ", " +
                     std::to_string(batch) + ", " + std::to_string(ranks));
        times_.clear();
        state_.clear();
        options.end = end;
        options.strategy = static_cast<Strategy>(strategy);
        options.roots = 2;
        options.stage_bytes = std::uint64_t{32} << 20;
        stretch(ranks, strategy % 3, options);
        const std::uint64_t all = options.epochs * kEntries;
        EXPECT_EQ(times_.size(), end == OrderEnd::drop ? all - all % batch : all);
        // What was left out comes when the run is made longer, and nothing else again.
        ++options.epochs;
        options.end = OrderEnd::exact;
        stretch(ranks, strategy % 3, options);
        EXPECT_EQ(times_.size(), all + kEntries);
        EXPECT_TRUE(std::ranges::all_of(times_, [](const auto& one) { return one.second == 1; }));
      }
    }
  }
}

TEST_F(Resume, AnyStopsOfRunsOfWholeEpochsRepeatAndLoseNothing) {
  for (unsigned seed = 0; seed < static_cast<unsigned>(test::long_cases(12)); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&random](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    times_.clear();
    state_.clear();
    LoaderOptions options;
    options.coalesce = static_cast<std::uint64_t>(pick(0, 8));
    for (int left = pick(1, 4); left >= 0; --left) {
      const int ranks = pick(1, 4);
      if (!state_.empty()) options.coalesce = 0;
      options.batch = static_cast<std::uint64_t>(pick(ranks, 30));
      options.strategy = static_cast<Strategy>(pick(0, 7));
      options.buffers = pick(1, 3);
      options.roots = pick(0, 2);
      options.stage_bytes = std::uint64_t{16} << 20;
      options.end = left > 0 ? kEnds[pick(0, 3)] : OrderEnd::exact;
      options.epochs = left > 0 ? static_cast<std::uint64_t>(pick(1, 3)) : 4;
      stretch(ranks, pick(0, 2), options, left > 0 ? pick(0, 12) : INT_MAX);
    }
    for (std::uint64_t global = 0; global < 4 * kEntries; ++global) {
      ASSERT_EQ(times_[global], 1) << "position " << global;
    }
    EXPECT_EQ(times_.size(), 4 * kEntries);
  }
}

// 120 samples stopped on 4 ranks and continued on 2: once 10 iterations instead of 6.
TEST_F(Resume, TheRestOfAnEpochHasAsManyIterationsAsItNeeds) {
  LoaderOptions options(OrderOptions{.batch = 20, .coalesce = 8}, RunOptions{.epochs = 1});
  stretch(4, 0, options, 2);
  options.batch = 10;
  int batches = 0;
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, path_, resume_options(state_, options, 2));
    while (loader.next()) {
      if (comm->rank() == 0) ++batches;
    }
  });
  EXPECT_EQ(batches, 6);
}

TEST_F(Resume, ARunThatHasEndedHasNothingLeft) {
  for (int strategy = 0; strategy < 8; ++strategy) {
    for (const OrderEnd end : kEnds) {
      SCOPED_TRACE(std::to_string(strategy) + ", " + std::string(to_string(end)));
      state_.clear();
      LoaderOptions options(OrderOptions{.batch = 30, .coalesce = kCoalesce},
                            RunOptions{.epochs = 1});
      options.strategy = static_cast<Strategy>(strategy);
      options.end = end;
      stretch(2, 0, options);
      times_.clear();
      stretch(2, 0, options);
      if (end != OrderEnd::drop) stretch(3, 0, options);
      EXPECT_TRUE(times_.empty());
    }
  }
}

TEST_F(Resume, TheChosenNumberOfIterationsIsKept) {
  LoaderOptions options(OrderOptions{.batch = 2}, RunOptions{.iterations = 2});
  stretch(2, 0, options);
  EXPECT_EQ(resume_options(state_, options, 3).coalesce, 3U) << "stopped inside a window";
  options.batch = 7;
  options.iterations = 0;
  options.epochs = 2;
  stretch(3, 0, options);
  for (std::uint64_t global = 0; global < 2 * kEntries; ++global) {
    ASSERT_EQ(times_[global], 1) << "position " << global;
  }
}

}  // namespace
}  // namespace forebay
