// Roots that take turns, in whole loaders: unequal work, one that ends early, one that fails while
// it has the turn, for every strategy. Nobody hangs, nobody gets a wrong sample, and a failure is
// the same for all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "read/read_setup.hpp"
#include "read/stagger.hpp"
#include "tests/read/extent_support.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/log_catcher.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using test::ExtentData;
using test::LmdbBuilder;

constexpr std::uint64_t kBatch = 13;  // no number of ranks divides it
constexpr std::uint64_t kCoalesce = 2;
/// Whole windows: a sample is always read by the same rank.
constexpr std::uint64_t kEntries = 16 * kCoalesce * kBatch;
constexpr int kRanks = 5;
constexpr int kFailing = 2;  ///< who comes to the damaged record
constexpr int kNobody = -1;
/// Shorter than any wait that ends by its limit; slow disks take some of it.
constexpr double kLongest = 15;

class StaggeredRoots : public ::testing::TestWithParam<std::tuple<StaggerBy, int>> {
 protected:
  struct Scene {
    Strategy strategy = Strategy::lmm;
    int ranks_per_node = 1;
    std::uint64_t iterations = 60;
    int leaving = kNobody;  ///< closes its loader after `batches`
    std::uint64_t batches = 0;
    bool fails = false;  ///< the run comes to a damaged record
  };

  /// The same scene in every strategy that has turns.
  static void for_strategies(Scene scene, const std::function<void(const Scene&)>& body) {
    for (const auto strategy : {Strategy::lmm, Strategy::lmm_dm, Strategy::lmm_dio,
                                Strategy::lmm_dio_prov_coal_stag, Strategy::automatic}) {
      scene.strategy = strategy;
      body(scene);
    }
  }

  static LoaderOptions options_of(const Scene& scene) {
    LoaderOptions options(OrderOptions{.batch = kBatch, .coalesce = kCoalesce},
                          RunOptions{.iterations = scene.iterations});
    options.strategy = scene.strategy;
    options.stagger_by = std::get<0>(GetParam());
    options.stagger = std::get<1>(GetParam());
    options.roots = 2;
    options.stage_bytes = std::uint64_t{16} << 20;
    options.timeout = 20s;
    return options;
  }

  /// Plays `scene` and returns the different failures that ranks have ended with.
  std::set<std::string> play(const std::string& path, const Scene& scene) {
    SCOPED_TRACE(options_of(scene).to_text());
    std::set<std::string> failures;
    std::mutex mutex;
    const double begin = now_seconds();
    run_ranks(kRanks, scene.ranks_per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, path, options_of(scene));
      try {
        const std::uint64_t came = consume(loader, comm->rank(), scene);
        if (comm->rank() == scene.leaving) return;
        EXPECT_FALSE(scene.fails) << "rank " << comm->rank() << " has heard of no failure";
        EXPECT_EQ(came, scene.iterations);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        failures.insert(error.what());
      }
    });
    EXPECT_LT(now_seconds() - begin, kLongest);
    return failures;
  }

  std::uint64_t consume(Loader& loader, int rank, const Scene& scene) {
    std::uint64_t came = 0;
    while (rank != scene.leaving || came < scene.batches) {
      const auto batch = loader.next();
      if (!batch) break;
      ++came;
      for (const Sample& sample : batch->samples()) {
        EXPECT_EQ(test::text(sample.key), data_.records()[sample.id].key);
        EXPECT_EQ(test::text(sample.value), data_.records()[sample.id].value);
      }
      // Ranks compute for different times, and so are their roots at different windows.
      if (rank % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(300 * rank));
    }
    return came;
  }

  /// One that kFailing reads in the middle of the epoch.
  std::uint64_t large_sample() const {
    const StridedOrder order(kEntries, kRanks, kBatch, kCoalesce);
    for (std::uint64_t window = 8;; ++window) {
      const forebay::Run run = order.window_run(kFailing, window);
      for (std::uint64_t i = run.first; i < run.first + run.count; ++i) {
        if (data_.records()[order.sample(i)].value.size() == 9000) return order.sample(i);
      }
    }
  }

  /// A copy in which one record of the first epoch has no beginning any more.
  std::string damaged() const {
    const std::uint64_t sample = large_sample();
    const std::string copy = folder_.file("damaged");
    std::filesystem::create_directory(copy);
    std::filesystem::copy_file(data_.path() + "/data.mdb", copy + "/data.mdb",
                               std::filesystem::copy_options::overwrite_existing);
    std::fstream file(copy + "/data.mdb", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(data_.extents(sample, 1).back().offset));
    const std::array<char, 16> nothing{};
    file.write(nothing.data(), nothing.size());
    return copy;
  }

  void expect_one_failure(const Scene& scene) {
    const auto failures = play(damaged(), scene);
    EXPECT_THAT(failures, testing::SizeIs(1)) << options_of(scene).to_text();
    for (const std::string& failure : failures) {
      EXPECT_THAT(failure, testing::HasSubstr("data.mdb"));
      EXPECT_THAT(failure, testing::HasSubstr("page"));
    }
  }

  test::TemporaryFolder folder_;
  ExtentData data_{LmdbBuilder().in_order(kEntries).value_sizes({50, 700, 9000})};
};

/// How many may read at once.
std::vector<int> some_turns() {
  return test::kSanitized ? std::vector<int>{1, 3} : std::vector<int>{1, 2, 3, 4};
}

INSTANTIATE_TEST_SUITE_P(Kinds, StaggeredRoots,
                         ::testing::Combine(::testing::Values(StaggerBy::token, StaggerBy::ticket),
                                            ::testing::ValuesIn(some_turns())),
                         [](const auto& tested) {
                           return std::string(to_string(std::get<0>(tested.param))) +
                                  std::to_string(std::get<1>(tested.param));
                         });

TEST_P(StaggeredRoots, UnequalWorkHoldsNobodyUp) {
  for (const int ranks_per_node : {1, 3}) {
    for_strategies({.ranks_per_node = ranks_per_node},
                   [&](const Scene& scene) { EXPECT_TRUE(play(data_.path(), scene).empty()); });
  }
}

TEST_P(StaggeredRoots, OthersGoOnWithoutARootThatEndsEarly) {
  for (const int leaving : {0, 1, 4}) {
    for (const std::uint64_t batches : {0, 9}) {
      for_strategies({.leaving = leaving, .batches = batches},
                     [&](const Scene& scene) { EXPECT_TRUE(play(data_.path(), scene).empty()); });
    }
  }
}

// lmm fails while it has the turn: it reads records one by one; the others notice what has come
// after they have given the turn back.
TEST_P(StaggeredRoots, ARootThatFailsInItsTurnEndsAllWithItsMessage) {
  for (const int ranks_per_node : {1, 3}) {
    for_strategies({.ranks_per_node = ranks_per_node, .iterations = 20'000, .fails = true},
                   [&](const Scene& scene) { expect_one_failure(scene); });
  }
}

TEST_P(StaggeredRoots, AFailureIsHeardAlsoAfterARootHasLeft) {
  for (const int leaving : {0, 3}) {
    for_strategies({.iterations = 20'000, .leaving = leaving, .batches = 3, .fails = true},
                   [&](const Scene& scene) { expect_one_failure(scene); });
  }
}

/// Where records come in bulk, the read itself fails, in the turn of whoever reads there.
TEST_P(StaggeredRoots, AFileThatIsCutEndsAllWhoseverTurnItIs) {
  for (const auto strategy : {Strategy::lmm_dio, Strategy::lmm_dio_prov_coal_stag}) {
    const std::string copy = folder_.file("cut");
    std::filesystem::create_directory(copy);
    std::filesystem::copy_file(data_.path() + "/data.mdb", copy + "/data.mdb",
                               std::filesystem::copy_options::overwrite_existing);
    LoaderOptions options = options_of({.strategy = strategy, .iterations = 20'000});
    const double begin = now_seconds();
    run_ranks(kRanks, 1, [&](const auto& comm) {
      Loader loader = Loader::open(comm, copy, options);
      for (int i = 0; i < 3; ++i) loader.next();
      comm->barrier();
      if (comm->rank() == 2) {
        std::filesystem::resize_file(copy + "/data.mdb",
                                     std::filesystem::file_size(copy + "/data.mdb") / 2);
      }
      try {
        while (const auto batch = loader.next()) {
          for (const Sample& sample : batch->samples()) {
            EXPECT_EQ(test::text(sample.value), data_.records()[sample.id].value);
          }
        }
        ADD_FAILURE() << "the end of a run without end";
      } catch (const Error& error) {
        EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::io, ErrorKind::changed));
        EXPECT_THAT(error.what(), testing::HasSubstr("data.mdb"));
      }
    });
    EXPECT_LT(now_seconds() - begin, kLongest);
  }
}

/// What is said of the turns of `ranks` roots that look for a number, and the state, at the end.
struct Found {
  std::string explained;
  std::uint64_t at_once = 0;
  std::string state;
};

Found look_for_a_number(const std::string& path, int ranks, const LoaderOptions& options) {
  Found found;
  run_ranks(ranks, 1, [&](const auto& comm) {
    Loader loader = Loader::open(comm, path, options);
    while (loader.next()) {
    }
    comm->barrier();
    if (comm->rank() != 0) return;
    found = {.explained = loader.explain(),
             .at_once = loader.statistics().roots_at_once,
             .state = loader.state()};
  });
  return found;
}

TEST(FoundStagger, IsToldAndGoesOnWithTheRun) {
  const test::TemporaryFolder folder;
  const std::string path = LmdbBuilder().in_order(kEntries).values(50).build(folder.file("data"));
  LoaderOptions options = LoaderOptions::parse("batch=13,coalesce=1,strategy=lmm-dio-prov");
  options.stagger = kMeasureStagger;
  options.iterations = 30;
  const Found first = look_for_a_number(path, 4, options);
  EXPECT_THAT(first.explained, testing::HasSubstr("of 4 roots read at once, by token (the fast"));
  EXPECT_GE(first.at_once, 1U);
  const std::string answer =
      "\"stagger\":{\"at_once\":" + std::to_string(first.at_once) + ",\"roots\":4}";
  EXPECT_THAT(first.state, testing::HasSubstr(answer));

  options.iterations = 60;
  const Found later = look_for_a_number(path, 4, resume_options(first.state, options, 4));
  EXPECT_EQ(later.at_once, first.at_once);
  EXPECT_THAT(later.state, testing::HasSubstr(answer));
  const Found others = look_for_a_number(path, 3, resume_options(first.state, options, 3));
  EXPECT_THAT(others.state, testing::HasSubstr("\"roots\":3")) << "looked for anew";
  EXPECT_THROW(
      resume_options(
          std::string(first.state).replace(first.state.find("\"roots\":4"), 9, "\"roots\":0"),
          options, 4),
      Error);
}

TEST(FoundStagger, IsNotLookedForInShortRuns) {
  const test::TemporaryFolder folder;
  const std::string path = LmdbBuilder().in_order(kEntries).values(50).build(folder.file("data"));
  LoaderOptions options = LoaderOptions::parse("batch=13,coalesce=1,strategy=lmm-dio-prov");
  options.stagger = kMeasureStagger;
  options.iterations = kTurnsWorthLooking - 1;
  const Found found = look_for_a_number(path, 4, options);
  EXPECT_THAT(found.explained, testing::HasSubstr("all 4 roots read at once (looking for fewer"));
  EXPECT_EQ(found.at_once, 4U);
  EXPECT_THAT(found.state, testing::Not(testing::HasSubstr("stagger")));
}

// Else a root of few would be as many streams for the servers as it has windows.
TEST(TurnsOfFew, AreOfOneWindowEach) {
  const test::TemporaryFolder folder;
  const std::string path = LmdbBuilder().in_order(kEntries).values(50).build(folder.file("data"));
  LoaderOptions options = LoaderOptions::parse("batch=13,coalesce=1,strategy=lmm-dio-prov-coal");
  options.iterations = 32;
  options.stage_bytes = std::uint64_t{256} << 20;
  for (const int stagger : {1, 3, 4}) {
    options.stagger = stagger;
    const Found found = look_for_a_number(path, 4, options);
    const bool together = found.explained.find("windows read together") != std::string::npos;
    EXPECT_EQ(together, stagger == 4) << found.explained;
  }
}

// Whoever asks for turns hears that there are none.
TEST(AskedForTurns, AreSaidToBeMissingWhereEachRankReads) {
  const test::TemporaryFolder folder;
  const std::string path = LmdbBuilder().in_order(kEntries).values(50).build(folder.file("data"));
  for (const int stagger : {kStaggerByStrategy, kNoStagger, kMeasureStagger, 1}) {
    LoaderOptions options = LoaderOptions::parse("batch=13,order=shuffled,epochs=1");
    options.stagger = stagger;
    const test::LogCatcher said;
    run_ranks(3, 0, [&](const auto& comm) { Loader::open(comm, path, options); });
    EXPECT_EQ(said.count("no turns are taken"), asks_for_turns(options) ? 1U : 0U) << stagger;
  }
}

}  // namespace
}  // namespace forebay
