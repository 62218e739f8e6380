// Decoding changes nothing but the form: a loader that decodes ahead delivers the batches, states
// and counts of one that does not, with the fields that the codec makes of each sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "tests/loader/decoded_data.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::DecodedData;
using test::LmdbBuilder;
using test::TemporaryFolder;

class RandomNumber {
 public:
  explicit RandomNumber(std::uint64_t seed) : random_(seed) {}
  std::uint64_t operator()(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }

 private:
  std::mt19937_64 random_;
};

/// What one rank gets of a loader that does not decode.
struct PlainRun {
  std::vector<std::vector<Sample>> batches;  ///< their spans are no longer valid
  std::vector<std::string> states;           ///< before the first batch, and after each
};

PlainRun run_plainly(const std::shared_ptr<Communicator>& comm, const DecodedData& data,
                     LoaderOptions options) {
  options.codec = "bytes";
  PlainRun run;
  Loader loader = Loader::open(comm, data.path(), options);
  run.states.push_back(loader.state());
  while (const auto batch = loader.next()) {
    run.batches.emplace_back(batch->samples().begin(), batch->samples().end());
    run.states.push_back(loader.state());
  }
  return run;
}

void expect_same(const std::shared_ptr<Communicator>& comm, const DecodedData& data,
                 const LoaderOptions& options, std::uint64_t seed) {
  const PlainRun plain = run_plainly(comm, data, options);
  comm->barrier();
  RandomNumber pick(seed + static_cast<std::uint64_t>(comm->rank()));
  Loader loader = Loader::open(comm, data.path(), data.decoding(options));
  ASSERT_EQ(loader.state(), plain.states[0]);
  std::vector<Batch> held;
  for (std::size_t i = 0; i < plain.batches.size(); ++i) {
    // Time for the line to run ahead, or not.
    if (pick(0, 7) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto batch = loader.next();
    ASSERT_TRUE(batch);
    ASSERT_EQ(loader.state(), plain.states[i + 1]);
    data.expect_decoded(*batch, plain.batches[i]);
    // What is held stays as it is, whatever is decoded meanwhile.
    if (!held.empty()) data.expect_decoded(held[0], plain.batches[i - 1]);
    held.clear();
    if (options.buffers > 1 && pick(0, 1) == 0 && options.coalesce > 1) {
      held.push_back(std::move(*batch));
    }
  }
  held.clear();
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.state(), plain.states.back());
  EXPECT_EQ(loader.statistics().batches, plain.batches.size());
  comm->barrier();
}

LoaderOptions random_options(RandomNumber& pick, std::uint64_t entries, int ranks) {
  LoaderOptions options(OrderOptions{.batch = pick(static_cast<std::uint64_t>(ranks), 30)});
  options.order = static_cast<OrderName>(pick(0, ranks == 1 ? 3 : 2));
  if (options.order == OrderName::strided) {
    options.coalesce = pick(1, 6);
    options.iterations = pick(1, 30);
  } else {
    constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::pad, OrderEnd::wrap, OrderEnd::drop};
    options.end = kEnds[pick(0, options.order == OrderName::shuffled ? 3 : 2)];
    options.epochs = pick(1, 3);
    options.window = pick(1, 4);
  }
  if (options.order == OrderName::grouped || options.order == OrderName::in_memory) {
    options.group = pick(1, entries / static_cast<std::uint64_t>(ranks));
  }
  options.buffers = static_cast<int>(pick(1, 3));
  options.decode_threads = static_cast<unsigned>(pick(1, 3));
  options.decode_ahead = static_cast<unsigned>(pick(0, 4));
  options.strategy = static_cast<Strategy>(pick(0, 7));
  options.stage_bytes = std::uint64_t{64} << 20;
  options.seed = pick(0, 99);
  return options;
}

TEST(Decoding, ChangesNothingButTheForm) {
  const TemporaryFolder folder;
  RandomNumber pick(3);
  std::vector<std::unique_ptr<DecodedData>> all;
  all.push_back(std::make_unique<DecodedData>(folder.file("good"), 101));
  std::set<std::uint64_t> bad;
  while (bad.size() < 30) bad.insert(pick(0, 100));
  all.push_back(std::make_unique<DecodedData>(folder.file("bad"), 101, bad));
  const auto rounds = static_cast<std::uint64_t>(test::long_cases(40));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const int ranks = static_cast<int>(pick(1, 5));
    const int ranks_per_node = static_cast<int>(pick(0, 3));
    const DecodedData& data = *all[round % 2];
    const LoaderOptions options = random_options(pick, data.entries(), ranks);
    SCOPED_TRACE("round " + std::to_string(round) + ", " + std::to_string(ranks) + " ranks, " +
                 options.to_text());
    run_ranks(ranks, ranks_per_node,
              [&](const auto& comm) { expect_same(comm, data, options, round); });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Decoding, EndsAtAnyMomentWithBatchesThatOutliveIt) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 200);
  RandomNumber pick(5);
  for (int round = 0; round < test::long_cases(40); ++round) {
    LoaderOptions options(OrderOptions{.batch = 12});
    options.order = round % 2 == 0 ? OrderName::strided : OrderName::shuffled;
    options.buffers = 3;
    options.decode_ahead = static_cast<unsigned>(pick(0, 4));
    options.window = 1;
    const std::uint64_t batches = pick(0, 20);
    const std::uint64_t kept = pick(0, 2);
    run_ranks(2, 0, [&](const auto& comm) {
      std::vector<Batch> held;
      std::vector<std::byte> first;
      {
        Loader loader = Loader::open(comm, data.path(), data.decoding(options));
        for (std::uint64_t i = 0; i < batches; ++i) {
          auto batch = loader.next();
          if (i + kept >= batches) {
            held.push_back(std::move(*batch));
            if (held.size() == 1) first.assign(held[0].field(0).begin(), held[0].field(0).end());
          }
        }
        comm->barrier();  // who reads for others stays until they have what they want
      }
      if (!held.empty()) {
        EXPECT_TRUE(std::ranges::equal(held[0].field(0), first));
      }
      comm->barrier();
    });
  }
}

/// Of a window and the next one, from the first of the run on.
TEST(Decoding, AWindowOfBatchesMayBeHeld) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 400);
  LoaderOptions options = data.decoding(LoaderOptions(OrderOptions{.batch = 10}));
  options.order = OrderName::shuffled;
  options.window = 8;
  options.buffers = 2;
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  std::deque<Batch> held;
  for (int i = 0; i < 30; ++i) {
    held.push_back(*loader.next());
    if (held.size() > 8) held.pop_front();
  }
}

TEST(Decoding, BatchesThatHoldAllBuffersAreRefusedWithNothingLost) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 60);
  LoaderOptions options = data.decoding(LoaderOptions(OrderOptions{.batch = 10, .coalesce = 1}));
  options.strategy = Strategy::lmm_dio;  // of which a buffer holds one batch
  options.buffers = 2;
  options.decode_ahead = 4;
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  std::vector<Batch> held;
  for (int i = 0; i < 2; ++i) held.push_back(*loader.next());
  EXPECT_THROW(loader.next(), Error);
  EXPECT_THROW(loader.next(), Error);
  held.erase(held.begin());
  EXPECT_EQ(loader.next()->samples()[0].id, 20U);
}

TEST(Decoding, OneBufferIsEnough) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 60);
  for (const OrderName order : {OrderName::strided, OrderName::shuffled, OrderName::grouped}) {
    LoaderOptions options =
        data.decoding(LoaderOptions(OrderOptions{.batch = 7}, RunOptions{.epochs = 2}));
    options.order = order;
    options.buffers = 1;
    options.window = 1;
    if (order == OrderName::grouped) options.group = 3;  // a batch spans three buffers
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    std::uint64_t samples = 0;
    while (const auto batch = loader.next()) samples += batch->samples().size();
    EXPECT_GE(samples, 120U) << to_string(order);
  }
}

TEST(Decoding, FieldsWithoutDecodingAreRefused) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 20);
  Loader plain =
      Loader::open(self_communicator(), data.path(), LoaderOptions(OrderOptions{.batch = 4}));
  EXPECT_THROW(plain.next()->field(0), Error);
  Loader loader = Loader::open(self_communicator(), data.path(),
                               data.decoding(LoaderOptions(OrderOptions{.batch = 4})));
  auto batch = loader.next();
  EXPECT_EQ(batch->field(1).size(), 4U * 32);
  EXPECT_THROW(batch->field(2), Error);
  EXPECT_THROW(batch->field("picture"), Error);
  batch->release();
  EXPECT_THROW(batch->field(0), Error);
}

TEST(Decoding, ArraysThatDoNotFitTheMemorySayWhatToDo) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 20);
  LoaderOptions options = data.decoding(LoaderOptions(OrderOptions{.batch = 16}));
  options.schema = "image:f64[1000x1000]";
  options.stage_bytes = std::uint64_t{64} << 20;
  run_ranks(2, 0, [&](const auto& comm) {
    try {
      Loader::open(comm, data.path(), options);
      ADD_FAILURE() << "it fits";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), testing::HasSubstr("--stage-bytes"));
    }
  });
}

TEST(Decoding, AnUndecodableSampleFailsAtItsBatchOnAllRanks) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 80, {50});  // iteration 6, rank 1
  LoaderOptions options = data.decoding(LoaderOptions(OrderOptions{.batch = 8, .coalesce = 1}));
  options.buffers = 8;
  options.undecodable = Undecodable::fail;
  options.decode_ahead = 4;
  for (const int ranks_per_node : {0, 1}) {
    run_ranks(4, ranks_per_node, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      const double begin = now_seconds();
      std::uint64_t came = 0;
      try {
        for (; now_seconds() - begin < 10; ++came) loader.next();
        ADD_FAILURE() << "rank " << comm->rank() << " went on for 10 s";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("rank 1"),
                                                 testing::HasSubstr("sample 50: key 00000050"),
                                                 testing::HasSubstr("has 7 bytes")));
      }
      if (comm->rank() == 1) {
        EXPECT_EQ(came, 6U);
      }
      EXPECT_THROW(loader.next(), Error);
      EXPECT_LT(now_seconds() - begin, 5);
      comm->barrier();
    });
  }
}

TEST(Decoding, AFailureElsewhereEndsTheRunAlsoWithBatchesInTheLine) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 80);
  run_ranks(3, 2, [&](const auto& comm) {
    Loader loader =
        Loader::open(comm, data.path(), data.decoding(LoaderOptions(OrderOptions{.batch = 8})));
    loader.next();
    comm->barrier();
    const double begin = now_seconds();
    if (comm->rank() == 2) loader.fail(Error(ErrorKind::corrupt, "fell over"));
    try {
      while (now_seconds() - begin < 5) loader.next();
      ADD_FAILURE() << "rank " << comm->rank() << " went on for 5 s";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("fell over"));
    }
    comm->barrier();
  });
}

TEST(Decoding, IsCounted) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 64);
  LoaderOptions options =
      data.decoding(LoaderOptions(OrderOptions{.batch = 8}, RunOptions{.epochs = 1}));
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  while (loader.next()) {
  }
  const LoaderStatistics figures = loader.statistics();
  EXPECT_EQ(figures.samples, 64U);
  EXPECT_EQ(figures.skipped, 0U);
  EXPECT_GT(figures.decode_seconds, 0);
  EXPECT_GT(figures.exposed_decode_seconds, 0) << "of the first batch, at least";
}

}  // namespace
}  // namespace forebay
