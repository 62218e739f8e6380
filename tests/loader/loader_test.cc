// The central contract (DESIGN 3): for one data set and order, every strategy, engine, root count,
// buffer count and node layout delivers the same samples with the same bytes to the same rank at
// the same iteration. The oracle is liblmdb's own cursor walk.
#include "forebay/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::LmdbBuilder;
using test::OracleRecord;
using test::TemporaryFolder;

struct TestData {
  std::string path;
  std::vector<OracleRecord> records;
};

TestData build(const TemporaryFolder& directory, const std::string& name,
               const LmdbBuilder& builder) {
  TestData data;
  data.path = builder.build(directory.file(name));
  data.records = test::read_with_liblmdb(directory.file(name));
  return data;
}

void expect_batch(const TestData& data, const StridedOrder& order, int rank, const Batch& batch) {
  const Run run = order.run(rank, batch.iteration());
  ASSERT_EQ(batch.samples().size(), run.count);
  for (std::uint64_t k = 0; k < run.count; ++k) {
    const Sample& sample = batch.samples()[k];
    ASSERT_EQ(sample.global, run.first + k);
    ASSERT_EQ(sample.position, k);
    ASSERT_EQ(sample.id, sample.global % data.records.size());
    ASSERT_EQ(test::text(sample.key), data.records[sample.id].key);
    ASSERT_EQ(test::text(sample.value), data.records[sample.id].value);
    ASSERT_FALSE(sample.repeat);
  }
}

void expect_right_samples(const TestData& data, int ranks, int ranks_per_node,
                          const LoaderOptions& options) {
  SCOPED_TRACE(data.path + " ranks=" + std::to_string(ranks) +
               " per node=" + std::to_string(ranks_per_node) + " " + options.to_text());
  run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path, options);
    const StridedOrder order(data.records.size(), ranks, options.batch, loader.order().coalesce());
    if (options.coalesce != 0) {
      EXPECT_EQ(order.coalesce(), options.coalesce);
    }
    std::uint64_t iteration = 0;
    while (const auto batch = loader.next()) {
      ASSERT_EQ(batch->iteration(), iteration++);
      expect_batch(data, order, comm->rank(), *batch);
    }
    EXPECT_EQ(iteration, options.iterations);
    EXPECT_EQ(loader.statistics().batches, options.iterations);
  });
}

/// Fails the test when an index was given up: right samples from a wrong index are a fault as well.
class NoIndexIsGivenUp {
 public:
  NoIndexIsGivenUp() {
    set_log_hook([](LogLevel level, std::string_view message) {
      if (level >= LogLevel::warning) {
        EXPECT_EQ(message.find("does not fit"), std::string_view::npos) << message;
      }
    });
  }
  ~NoIndexIsGivenUp() { set_log_hook({}); }
};

TEST(Loader, NoStrategyChangesTheData) {
  const NoIndexIsGivenUp watched;
  TemporaryFolder directory;
  const std::vector<TestData> all = {
      build(directory, "small", LmdbBuilder().in_order(500).values(0, 300)),
      build(directory, "mixed", LmdbBuilder().random_order(300).values(0, 9000).delete_every(7)),
      build(directory, "one", LmdbBuilder().in_order(1).values(5000)),
  };
  std::mt19937_64 random(5);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  constexpr Strategy kStrategies[] = {Strategy::automatic,
                                      Strategy::lmdb,
                                      Strategy::lmm,
                                      Strategy::lmm_dm,
                                      Strategy::lmm_dio,
                                      Strategy::lmm_dio_prov,
                                      Strategy::lmm_dio_prov_coal,
                                      Strategy::lmm_dio_prov_coal_stag};
  for (int round = 0; round < test::long_cases(80); ++round) {
    const int ranks = static_cast<int>(pick(1, 8));
    LoaderOptions options(OrderOptions{.batch = pick(ranks, 50),
                                       .coalesce = pick(0, 2) == 0 ? pick(1, 64) : pick(0, 4)},
                          RunOptions{.iterations = pick(1, 30)});
    options.strategy = kStrategies[static_cast<std::size_t>(round) % std::size(kStrategies)];
    if (options.strategy != Strategy::lmdb) {
      if (pick(0, 3) == 0) options.locate = static_cast<Locate>(pick(0, 5));
      if (pick(0, 1) == 0) options.engine = static_cast<ReadEngine>(pick(0, 3));
    }
    options.roots = static_cast<int>(pick(0, 3));
    options.buffers = static_cast<int>(pick(1, 3));
    options.stagger = static_cast<int>(pick(0, 6)) - 2;
    options.stagger_by = pick(0, 1) == 0 ? StaggerBy::token : StaggerBy::ticket;
    options.gap_bytes = pick(0, 1) * 65536;
    options.request_bytes = pick(0, 1) * 8192;
    options.stage_bytes = std::uint64_t{64} << 20;
    expect_right_samples(all[pick(0, all.size() - 1)], ranks, static_cast<int>(pick(0, 4)),
                         options);
  }
}

TEST(Loader, TheChosenOrderDoesNotDependOnHowItIsRead) {
  const TemporaryFolder directory;
  const std::string path =
      LmdbBuilder().in_order(6000).values(4000).build(directory.file("data"));  // more than 16 MiB
  const auto chosen = [&](const ReadOptions& reading, int ranks_per_node = 0) {
    const LoaderOptions options(OrderOptions{.batch = 100}, reading, RunOptions{.iterations = 1});
    std::atomic<std::uint64_t> coalesce = 0;
    run_ranks(2, ranks_per_node, [&](const auto& comm) {
      coalesce = Loader::open(comm, path, options).order().coalesce();
    });
    return coalesce.load();
  };
  constexpr std::uint64_t kExpected = 3;  // 16 windows in an epoch
  for (const Locate locate : {Locate::seek, Locate::handoff, Locate::scatter, Locate::scan}) {
    for (const ReadEngine engine : {ReadEngine::mmap, ReadEngine::pread}) {
      EXPECT_EQ(chosen({.locate = locate, .engine = engine}), kExpected)
          << to_string(locate) << to_string(engine);
    }
  }
  for (const std::uint64_t stage : {4, 24, 64, 2048}) {  // each another number of windows at once
    EXPECT_EQ(chosen({.buffers = 1, .stage_bytes = stage << 20}), kExpected) << stage;
    EXPECT_EQ(chosen({.stage_bytes = stage << 20}, 1), kExpected) << stage;
  }
}

TEST(Loader, AStageThatIsTooSmallForTheOrderNamesOneThatFits) {
  const TemporaryFolder directory;
  const std::string path = LmdbBuilder().in_order(6000).values(4000).build(directory.file("data"));
  LoaderOptions options(OrderOptions{.batch = 100}, ReadOptions{.stage_bytes = 2 << 20});
  const auto open = [&] {
    run_ranks(2, 0, [&](const auto& comm) { Loader::open(comm, path, options); });
  };
  EXPECT_THAT(open, testing::Throws<Error>(testing::Property(
                        &Error::remedy, testing::HasSubstr("--coalesce 2 fits"))));
  options.coalesce = 2;
  EXPECT_NO_THROW(open());
}

TEST(Loader, TheOrderThatIsNamedFitsWhereFewIterationsAreWanted) {
  const TemporaryFolder directory;
  const std::string path = LmdbBuilder().in_order(6000).values(4000).build(directory.file("data"));
  LoaderOptions options(OrderOptions{.batch = 100, .coalesce = 50},
                        ReadOptions{.stage_bytes = 2 << 20}, RunOptions{.iterations = 4});
  for (const Locate locate : {Locate::scan, Locate::seek}) {
    options.locate = locate;
    options.coalesce = 50;
    const auto open = [&] {
      run_ranks(2, 0, [&](const auto& comm) {
        Loader loader = Loader::open(comm, path, options);
        while (loader.next()) continue;
      });
    };
    EXPECT_THAT(open, testing::Throws<Error>(testing::Property(
                          &Error::remedy, testing::HasSubstr("--coalesce 2 fits"))));
    options.coalesce = 2;
    EXPECT_NO_THROW(open()) << to_string(locate);
  }
}

// A sample's entry in the stage may be larger than the sample.
TEST(Loader, TinySamplesLeaveRoomForTheTable) {
  const TemporaryFolder directory;
  const std::string path = directory.file("bytes");
  std::ofstream(path) << std::string(200'000, 'x');
  const LoaderOptions options(DataOptions{.format = "raw", .schema = "x:u8[1]"},
                              OrderOptions{.batch = 64, .coalesce = 1},
                              ReadOptions{.stage_bytes = 1 << 20}, RunOptions{.epochs = 1});
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, path, options);
    std::uint64_t samples = 0;
    while (const auto batch = loader.next()) samples += batch->samples().size();
    EXPECT_EQ(samples, 100'000U);
  });
}

TEST(Loader, ResumesWhereItStopped) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(97).values(50));
  const LoaderOptions options(OrderOptions{.batch = 10, .coalesce = 3});
  run_ranks(3, 0, [&](const auto& comm) {
    std::string state;
    {
      Loader loader = Loader::open(comm, data.path, options);
      for (int i = 0; i < 5; ++i) loader.next();
      state = loader.state();
      comm->barrier();
    }
    Loader loader = Loader::open(comm, data.path, resume_options(state, options, 3));
    const StridedOrder order(data.records.size(), 3, options.batch, options.coalesce);
    for (std::uint64_t iteration = 5; iteration < 12; ++iteration) {
      const auto batch = loader.next();
      ASSERT_EQ(batch->iteration(), iteration);
      expect_batch(data, order, comm->rank(), *batch);
    }
    comm->barrier();
  });
}

TEST(Loader, OtherRanksGoOnWithTheRestOfTheEpoch) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(100).values(50));
  std::string state;
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader =
        Loader::open(comm, data.path, LoaderOptions(OrderOptions{.batch = 10, .coalesce = 1}));
    for (int i = 0; i < 4; ++i) loader.next();
    comm->barrier();
    if (comm->rank() == 0) state = loader.state();
  });
  std::atomic<std::uint64_t> seen = 0;
  run_ranks(3, 0, [&](const auto& comm) {
    LoaderOptions options(OrderOptions{.batch = 12});
    options.epochs = 1;
    Loader loader = Loader::open(comm, data.path, resume_options(state, options, 3));
    while (const auto batch = loader.next()) {
      for (const Sample& sample : batch->samples()) {
        EXPECT_GE(sample.global, 40U);
        ++seen;
      }
    }
  });
  EXPECT_EQ(seen, 60U);
}

TEST(Loader, RefusesToResumeOnAnotherDataSetOfTheSameShape) {
  TemporaryFolder directory;
  const TestData one = build(directory, "one", LmdbBuilder().in_order(20).values(50).seed(1));
  const TestData other = build(directory, "other", LmdbBuilder().in_order(20).values(50).seed(2));
  const auto comm = self_communicator();
  const std::string state =
      Loader::open(comm, one.path, LoaderOptions(OrderOptions{.batch = 2})).state();
  EXPECT_NO_THROW(Loader::open(comm, one.path,
                               resume_options(state, LoaderOptions(OrderOptions{.batch = 2}), 1)));
  EXPECT_THROW(Loader::open(comm, other.path,
                            resume_options(state, LoaderOptions(OrderOptions{.batch = 2}), 1)),
               Error);
}

TEST(Loader, RefusesToResumeOnAnotherDataSet) {
  TemporaryFolder directory;
  const TestData one = build(directory, "one", LmdbBuilder().in_order(20).values(50));
  const TestData other = build(directory, "other", LmdbBuilder().in_order(21).values(50));
  const auto comm = self_communicator();
  const std::string state =
      Loader::open(comm, one.path, LoaderOptions(OrderOptions{.batch = 2})).state();
  try {
    Loader::open(comm, other.path,
                 resume_options(state, LoaderOptions(OrderOptions{.batch = 2}), 1));
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::changed);
  }
}

TEST(Loader, AFailureOnOneRankReachesAllWithItsMessage) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  for (const int ranks_per_node : {0, 1, 2}) {
    run_ranks(4, ranks_per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path, LoaderOptions(OrderOptions{.batch = 8}));
      loader.next();
      comm->barrier();
      const double begin = now_seconds();
      if (comm->rank() == 2) loader.fail(Error(ErrorKind::corrupt, "no picture", "", {.key = "k"}));
      try {
        while (now_seconds() - begin < 5) loader.next();
        ADD_FAILURE() << "rank " << comm->rank() << " went on for 5 s";
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "rank 2: key k: no picture");
      }
      comm->barrier();
    });
  }
}

TEST(Loader, ArraysThatDoNotFitAreRefusedOnAllRanks) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(48));
  run_ranks(2, 0, [&](const auto& comm) {
    LoaderOptions options(OrderOptions{.batch = 8});
    options.codec = "raw";
    options.schema = "image:u8[3x4x4]";
    Loader loader = Loader::open(comm, data.path, options);
    std::vector<std::byte> array(4 * 48);
    const std::span<std::byte> whole(array);
    const auto decode = [&](std::span<std::byte> room) {
      loader.decode(*loader.next(), std::span(&room, 1));
    };
    EXPECT_NO_THROW(decode(whole));
    comm->barrier();
    const double begin = now_seconds();
    try {
      while (now_seconds() - begin < 5) decode(comm->rank() == 1 ? whole.first(100) : whole);
      ADD_FAILURE() << "rank " << comm->rank() << " went on for 5 s";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.where().rank, 1);
    }
    comm->barrier();
  });
}

TEST(Loader, OpeningFailsOnAllRanksTogether) {
  run_ranks(3, 0, [](const auto& comm) {
    EXPECT_THROW(Loader::open(comm, "/nowhere/at/all", LoaderOptions(OrderOptions{.batch = 3})),
                 Error);
    EXPECT_THROW(Loader::open(comm, "/nowhere/at/all", LoaderOptions(OrderOptions{.batch = 2})),
                 Error);
    comm->barrier();
  });
}

TEST(Loader, RanksWithDifferentOptionsAreRefused) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(97).values(50));
  run_ranks(3, 0, [&](const auto& comm) {
    LoaderOptions options(OrderOptions{.batch = 10}, RunOptions{.epochs = 1});
    if (comm->rank() == 2) options.batch = 11;
    try {
      Loader::open(comm, data.path, options);
      ADD_FAILURE() << "rank " << comm->rank() << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), testing::HasSubstr("rank 2: the loader's options here: batch=11"));
    }
    comm->barrier();
  });
}

TEST(Loader, EpochsAndStagesBeyondAllBoundsAreRefused) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(2048).values(5));
  const auto comm = self_communicator();
  // The number of samples would wrap to zero: an empty run.
  EXPECT_THROW(Loader::open(comm, data.path,
                            LoaderOptions(OrderOptions{.batch = 7},
                                          RunOptions{.epochs = std::uint64_t{1} << 53})),
               Error);
  EXPECT_THROW(Loader::open(comm, data.path,
                            LoaderOptions(OrderOptions{.batch = 7},
                                          ReadOptions{.stage_bytes = UINT64_MAX - 4095})),
               Error);
}

TEST(Loader, ABatchOutlivesItsLoader) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  std::optional<Batch> batch;
  {
    Loader loader =
        Loader::open(self_communicator(), data.path, LoaderOptions(OrderOptions{.batch = 8}));
    batch = loader.next();
  }
  EXPECT_EQ(test::text(batch->samples()[3].value), data.records[3].value);
}

TEST(Loader, HeldBatchesStayUntouchedAndTooManyAreRefused) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  LoaderOptions options(OrderOptions{.batch = 8, .coalesce = 1});
  options.strategy = Strategy::lmm_dio;  // of which a buffer holds one batch
  options.buffers = 3;
  Loader loader = Loader::open(self_communicator(), data.path, options);
  std::vector<Batch> held;
  for (int i = 0; i < 3; ++i) held.push_back(*loader.next());
  EXPECT_THROW(loader.next(), Error);
  EXPECT_EQ(test::text(held[0].samples()[1].value), data.records[1].value);
  held.erase(held.begin() + 1);
  EXPECT_THROW(loader.next(), Error) << "the oldest still holds its buffer";
  held.erase(held.begin());
  EXPECT_EQ(loader.next()->samples()[0].id, 24U);
}

TEST(Loader, AnyRankMayStopEarly) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  run_ranks(4, 0, [&](const auto& comm) {
    Loader loader = Loader::open(
        comm, data.path, LoaderOptions(OrderOptions{.batch = 8}, RunOptions{.iterations = 100}));
    loader.next();
    if (comm->rank() == 1) return;  // not the reader: the others go on
    int batches = 1;
    while (loader.next()) ++batches;
    EXPECT_EQ(batches, 100);
  });
}

TEST(Loader, AClosedReaderIsToldToTheOthers) {
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  run_ranks(2, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path, LoaderOptions(OrderOptions{.batch = 8}));
    if (comm->rank() == 0) return;
    try {
      for (int i = 0; i < 100; ++i) loader.next();
      ADD_FAILURE() << "data without a reader";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::cancelled);
    }
  });
}

std::optional<Loader> forgotten;

TEST(LoaderDeathTest, ALoaderThatNobodyClosesDoesNotHoldUpTheExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TemporaryFolder directory;
  const TestData data = build(directory, "data", LmdbBuilder().in_order(50).values(50));
  const double begin = now_seconds();
  EXPECT_EXIT(
      {
        forgotten =
            Loader::open(self_communicator(), data.path, LoaderOptions(OrderOptions{.batch = 8}));
        forgotten->next();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_LT(now_seconds() - begin, 5);
}

}  // namespace
}  // namespace forebay
