// Processes that are not connected deliver what the ranks of one MPI run do, also when either goes
// on with what the other has left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "tests/support/counting_source.hpp"
#include "tests/support/lmdb_builder.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using testing::HasSubstr;

/// A part of a run: `shards` communicators of `ranks / shards` ranks each.
struct Stretch {
  int ranks = 1;
  int shards = 1;
  LoaderOptions options;
  std::uint64_t batches = UINT64_MAX;
};

class Shards : public testing::Test {
 protected:
  /// What each rank gets at each iteration, in words.
  using Delivered = std::map<std::pair<std::uint64_t, int>, std::vector<std::string>>;

  Shards()
      : path_(test::LmdbBuilder().random_order(83).values(0, 6000).build(folder_.file("data"))) {}

  /// Goes on from `state`, or starts; leaves there the state in which all shards agree.
  Delivered run(const Stretch& stretch, std::string& state) {
    const std::string before = state;
    Delivered delivered;
    std::mutex mutex;
    for (int shard = 0; shard < stretch.shards; ++shard) {
      LoaderOptions options = stretch.options;
      options.shard = {.index = shard, .count = stretch.shards};
      const int ranks = stretch.ranks / stretch.shards;
      if (!before.empty()) options = resume_options(before, options, ranks);
      const auto body = [&](const std::shared_ptr<Communicator>& comm) {
        Loader loader = Loader::open(comm, path_, options);
        for (std::uint64_t i = 0; i < stretch.batches; ++i) {
          const auto batch = loader.next();
          if (!batch) break;
          const std::lock_guard lock(mutex);
          delivered[{batch->iteration(), shard * ranks + comm->rank()}] = words(*batch);
        }
        comm->barrier();
        if (comm->rank() == 0) keep(shard, loader.state(), state);
      };
      if (ranks == 1) {
        body(self_communicator());
      } else {
        run_ranks(ranks, 0, body);
      }
    }
    return delivered;
  }

  static std::vector<std::string> words(const Batch& batch) {
    std::vector<std::string> all = {std::to_string(batch.epoch())};
    for (const Sample& sample : batch.samples()) {
      all.push_back(std::to_string(sample.id) + " " + std::to_string(sample.global) + " " +
                    std::to_string(sample.epoch) + " " + std::to_string(sample.position) + " " +
                    std::to_string(sample.seed()) + (sample.repeat ? " repeat " : " ") +
                    test::text(sample.key) + " " + test::text(sample.value));
    }
    return all;
  }

  static void keep(int shard, const std::string& mine, std::string& state) {
    if (shard == 0) state = mine;
    EXPECT_EQ(mine, state) << "shard " << shard;
  }

  /// Options of any order that ranks read by themselves.
  LoaderOptions some_order(std::mt19937& random) const {
    const auto pick = [&random](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    LoaderOptions options;
    const OrderName orders[] = {OrderName::strided, OrderName::grouped, OrderName::shuffled,
                                OrderName::listed};
    options.order = orders[pick(0, 3)];
    options.seed = random();
    options.end = static_cast<OrderEnd>(pick(0, 3));
    options.window = static_cast<std::uint64_t>(pick(1, 4));
    if (options.order == OrderName::strided) {
      options.coalesce = static_cast<std::uint64_t>(pick(1, 4));
    } else {
      options.reuse = static_cast<std::uint64_t>(pick(1, 2));
    }
    if (options.order == OrderName::grouped) options.group = static_cast<std::uint64_t>(pick(1, 9));
    if (options.order == OrderName::shuffled) options.keep = static_cast<std::uint64_t>(pick(1, 3));
    if (options.order == OrderName::listed) options.ids = list(random);
    const Strategy strategies[] = {Strategy::automatic, Strategy::lmdb, Strategy::lmm,
                                   Strategy::lmm_dm, Strategy::lmm_dio};
    options.strategy = strategies[pick(0, 4)];
    options.stagger = kNoStagger;
    options.buffers = pick(1, 3);
    options.stage_bytes = std::uint64_t{16} << 20;
    options.epochs = 2;
    return options;
  }

  static SharedNumbers list(std::mt19937& random) {
    std::vector<std::uint64_t> ids(70);
    for (std::uint64_t& id : ids) id = std::uniform_int_distribution<std::uint64_t>(0, 82)(random);
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
  }

  test::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(Shards, DeliverWhatTheRanksOfOneRunDo) {
  for (int seed = 0; seed < test::long_cases(40); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    const int shards = std::uniform_int_distribution<int>(1, 5)(random);
    const int ranks = shards * std::uniform_int_distribution<int>(1, 2)(random);
    LoaderOptions options = some_order(random);
    options.batch =
        std::uniform_int_distribution<std::uint64_t>(static_cast<std::uint64_t>(ranks), 20)(random);
    SCOPED_TRACE(options.to_text());
    std::string together, apart;
    const Delivered expected = run({.ranks = ranks, .options = options}, together);
    ASSERT_EQ(run({.ranks = ranks, .shards = shards, .options = options}, apart), expected);
    ASSERT_EQ(apart, together);
  }
}

TEST_F(Shards, AndConnectedRanksGoOnWithWhatTheOtherHasLeft) {
  for (int seed = 0; seed < test::long_cases(30); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    LoaderOptions options = some_order(random);
    options.batch = 8;
    SCOPED_TRACE(options.to_text());
    std::string together, apart;
    const auto stop = std::uniform_int_distribution<std::uint64_t>(0, 12)(random);
    run({.ranks = 4, .options = options, .batches = stop}, together);
    run({.ranks = 4, .shards = 4, .options = options, .batches = stop}, apart);
    ASSERT_EQ(apart, together);
    const int ranks = std::uniform_int_distribution<int>(1, 3)(random) * 2;
    options.batch = std::uniform_int_distribution<std::uint64_t>(7, 9)(random);
    const Delivered expected = run({.ranks = ranks, .options = options}, together);
    ASSERT_EQ(run({.ranks = ranks, .shards = 2, .options = options}, apart), expected);
    ASSERT_EQ(apart, together);
  }
}

TEST_F(Shards, NameTheirRankInTheWholeRun) {
  LoaderOptions options(OrderOptions{.batch = 8}, RunOptions{.shard = {.index = 2, .count = 4}});
  Loader loader = Loader::open(self_communicator(), path_, options);
  EXPECT_THAT(loader.explain(), testing::AllOf(HasSubstr("4 ranks"), HasSubstr("shard 2/4")));
  loader.fail(Error(ErrorKind::cancelled, "enough"));
  EXPECT_THROW(loader.next(), Error);
}

TEST_F(Shards, CoalesceAsRanksDo) {
  const std::string path =
      test::LmdbBuilder().in_order(700).values(3000).build(folder_.file("more"));
  LoaderOptions options(OrderOptions{.batch = 8}, RunOptions{.epochs = 1});
  std::atomic<std::uint64_t> of_ranks = 0;
  run_ranks(2, 0, [&](const auto& comm) {
    of_ranks = Loader::open(comm, path, options).order().coalesce();
  });
  EXPECT_EQ(of_ranks, 5U);
  options.shard = {.index = 0, .count = 2};
  for (const std::uint64_t stage : {0, 1 << 20}) {  // theirs is each shard's own
    options.stage_bytes = stage;
    EXPECT_EQ(Loader::open(self_communicator(), path, options).order().coalesce(), of_ranks);
  }
}

TEST_F(Shards, DecodedArraysAreThoseOfTheirShare) {
  LoaderOptions options(OrderOptions{.batch = 8},
                        RunOptions{.epochs = 1, .shard = {.index = 1, .count = 4}});
  options.stage_bytes = 64 << 10;
  options.codec = "raw";
  options.schema = "x:u8[3000]";
  options.decode = true;
  options.undecodable = Undecodable::skip;
  // Two of eight samples: batches of all eight would not fit half of the stage.
  options.decode_ahead = 0;
  Loader loader = Loader::open(self_communicator(), path_, options);
  EXPECT_THAT(loader.explain(), HasSubstr("arrays of 5.9 KiB"));
}

std::string refusal(LoaderOptions options, int ranks = 1) {
  try {
    options.validate(ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(ShardOptions, HaveATextForm) {
  const LoaderOptions options = LoaderOptions::parse("batch=8,shard=2/4");
  EXPECT_EQ(options.shard, (Shard{.index = 2, .count = 4}));
  EXPECT_EQ(options.to_text(), "batch=8,shard=2/4");
  EXPECT_EQ(LoaderOptions::parse("shard=0/1").to_text(), "");
  for (const char* wrong : {"4/4", "5/4", "-1/4", "1", "/", "1/", "/4", "0/0", "1/2/3", "1 /2",
                            "0/99999999999", "a/b", ""}) {
    EXPECT_THROW(LoaderOptions::parse("shard=" + std::string(wrong)), Error) << wrong;
  }
}

TEST(ShardOptions, RefuseWhatNeedsTheOthers) {
  const auto with = [](const std::string& text) {
    return refusal(LoaderOptions::parse("batch=8,shard=1/4," + text));
  };
  EXPECT_THAT(with("order=in_memory"),
              testing::AllOf(HasSubstr("order in_memory"), HasSubstr("MPI")));
  EXPECT_THAT(with("order=in_memory,memory-ratio=0.5"), HasSubstr("MPI"));
  EXPECT_THAT(with("order=shuffled,hold=memory"), HasSubstr("hold memory"));
  EXPECT_THAT(with("order=shuffled,reuse=2,reuse-scope=global"), HasSubstr("reuse across ranks"));
  EXPECT_THAT(with("order=shuffled,reuse=2,reuse-scope=node"), HasSubstr("reuse across ranks"));
  EXPECT_EQ(with("order=shuffled,reuse=2"), "no error");
  EXPECT_EQ(refusal(LoaderOptions::parse("batch=8,order=in_memory,shard=0/1")), "no error");
}

TEST(ShardOptions, RefuseNumbersThatNoRunCanHave) {
  EXPECT_THAT(refusal(LoaderOptions::parse("batch=3,shard=1/4")), HasSubstr("4 ranks"));
  EXPECT_THAT(refusal(LoaderOptions::parse("batch=7,shard=1/4"), 2), HasSubstr("8 ranks"));
  EXPECT_THAT(refusal(LoaderOptions(OrderOptions{.batch = 8},
                                    RunOptions{.shard = {.index = 4, .count = 4}})),
              HasSubstr("shard 4/4"));
  EXPECT_THAT(refusal(LoaderOptions(OrderOptions{.batch = 8},
                                    RunOptions{.shard = {.index = -1, .count = 4}})),
              HasSubstr("shard -1/4"));
  EXPECT_THAT(refusal(LoaderOptions(OrderOptions{.batch = 8},
                                    RunOptions{.shard = {.index = 0, .count = 0}})),
              HasSubstr("shard 0/0"));
  EXPECT_THAT(refusal(LoaderOptions::parse("batch=8,shard=0/1000000"), 4096),
              HasSubstr("too many"));
}

}  // namespace
}  // namespace forebay
