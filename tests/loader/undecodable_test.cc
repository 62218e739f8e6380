// Samples that do not decode, with the policy `skip`: they are left out and listed, everybody else
// comes, and all ranks do the same number of iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "forebay/epoch_order.hpp"
#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "format/codec/datum.hpp"
#include "format/lmdb/writer.hpp"
#include "loader/run_figures.hpp"
#include "tests/loader/decoded_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::DecodedData;
using test::TemporaryFolder;

/// Warnings of the loader, while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_hook(
        [this](LogLevel, std::string_view message) {
          const std::lock_guard lock(mutex_);
          messages_.emplace_back(message);
        },
        LogLevel::warning);
  }
  ~Warnings() { set_log_hook({}); }
  std::vector<std::string> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

/// What all ranks got of a run together.
struct Outcome {
  std::multiset<std::uint64_t> delivered;
  std::set<std::uint64_t> skipped;
  std::vector<std::uint64_t> iterations;  ///< by rank
  std::vector<std::uint64_t> counts;      ///< LoaderStatistics::skipped by rank
};

Outcome run(const DecodedData& data, const LoaderOptions& options, int ranks) {
  std::mutex mutex;
  Outcome outcome;
  outcome.iterations.resize(static_cast<std::size_t>(ranks));
  outcome.counts.resize(static_cast<std::size_t>(ranks));
  run_ranks(ranks, 0, [&](const auto& comm) {
    const auto me = static_cast<std::size_t>(comm->rank());
    Loader loader = Loader::open(comm, data.path(), options);
    std::vector<std::uint64_t> ids;
    while (const auto batch = loader.next()) {
      ++outcome.iterations[me];
      for (const Sample& sample : batch->samples()) ids.push_back(sample.id);
      EXPECT_EQ(batch->field("image").size(), batch->samples().size() * 16);
    }
    outcome.counts[me] = loader.statistics().skipped;
    const std::lock_guard lock(mutex);
    outcome.delivered.insert(ids.begin(), ids.end());
    for (const SkippedSample& sample : loader.skipped()) {
      EXPECT_TRUE(outcome.skipped.insert(sample.id).second) << sample.id << " is listed twice";
      EXPECT_THAT(sample.message, testing::HasSubstr("7 bytes"));
      EXPECT_THAT(sample.key, testing::EndsWith(std::to_string(sample.id)));
    }
  });
  return outcome;
}

void expect_all_but_the_bad(const DecodedData& data, const Outcome& outcome, std::uint64_t epochs,
                            std::size_t rank) {
  EXPECT_THAT(outcome.iterations, testing::Each(outcome.iterations[0]));
  EXPECT_EQ(outcome.skipped, data.bad());
  EXPECT_EQ(outcome.delivered.size(), (data.entries() - data.bad().size()) * epochs);
  for (std::uint64_t id = 0; id < data.entries(); ++id) {
    EXPECT_EQ(outcome.delivered.count(id), data.bad().contains(id) ? 0 : epochs) << id;
  }
  for (std::size_t i = 0; i < outcome.counts.size(); ++i) {
    EXPECT_EQ(outcome.counts[i], i == rank ? data.bad().size() * epochs : 0);
  }
}

TEST(Undecodable, SevenOfFortySamplesOnOneRankAreLeftOutAndListed) {
  const TemporaryFolder folder;
  // Rank 2 of 4 has the positions 4 and 5 of each batch of 8: two of its batches stay empty.
  const DecodedData data(folder.file("data"), 40, {4, 5, 12, 20, 21, 28, 37});
  Warnings warnings;
  const Outcome outcome = run(data,
                              data.decoding(LoaderOptions(OrderOptions{.batch = 8, .coalesce = 1},
                                                          RunOptions{.epochs = 2})),
                              4);
  EXPECT_EQ(outcome.iterations[0], 10U);
  expect_all_but_the_bad(data, outcome, 2, 2);
  EXPECT_THAT(warnings.messages(), testing::SizeIs(7)) << "each once, in two epochs";
  EXPECT_THAT(warnings.messages(),
              testing::Contains(testing::AllOf(testing::HasSubstr("sample 37: key 00000037"),
                                               testing::HasSubstr("skipped"))));
}

TEST(Undecodable, AlsoWhereTheyAreOfOneRankInARandomOrder) {
  const TemporaryFolder folder;
  LoaderOptions options(OrderOptions{.batch = 6}, RunOptions{.epochs = 1});
  options.order = OrderName::grouped;
  options.group = 10;
  options.seed = 4;
  OrderOptions order{.order = OrderName::grouped, .entries = 40, .ranks = 4, .batch = 6, .seed = 4};
  order.group = 10;
  const EpochOrder epoch(order, 0);
  std::set<std::uint64_t> bad;
  for (std::uint64_t draw = 0; draw < 7; ++draw) bad.insert(epoch.draw(3, draw).sample);
  const DecodedData data(folder.file("data"), 40, bad);
  expect_all_but_the_bad(data, run(data, data.decoding(options), 4), 1, 3);
}

TEST(Undecodable, TwoGroupsOnFourRanksAreRefusedByAllAtOnce) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 40, {3});
  LoaderOptions options(OrderOptions{.batch = 8}, RunOptions{.epochs = 1});
  options.order = OrderName::grouped;
  options.group = 20;
  std::mutex mutex;
  std::set<std::string> messages;
  run_ranks(4, 0, [&](const auto& comm) {
    try {
      Loader::open(comm, data.path(), data.decoding(options));
      ADD_FAILURE() << "rank " << comm->rank() << " opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      const std::lock_guard lock(mutex);
      messages.insert(error.what());
    }
    comm->barrier();
  });
  EXPECT_EQ(messages.size(), 1U);
}

TEST(Undecodable, NothingButBadSamplesGivesEmptyBatches) {
  const TemporaryFolder folder;
  std::set<std::uint64_t> all;
  for (std::uint64_t id = 0; id < 24; ++id) all.insert(id);
  const DecodedData data(folder.file("data"), 24, all);
  const Outcome outcome =
      run(data, data.decoding(LoaderOptions(OrderOptions{.batch = 8}, RunOptions{.epochs = 1})), 1);
  EXPECT_EQ(outcome.iterations[0], 3U);
  expect_all_but_the_bad(data, outcome, 1, 0);
}

TEST(Undecodable, TheListAndTheLogAreBounded) {
  Warnings warnings;
  SkippedList list;
  for (std::uint64_t id = 0; id < 3 * SkippedList::kMostListed; ++id) {
    const SkippedSample sample{.id = id / 2, .key = "k", .message = "no picture"};
    list.add("file", {&sample, 1});
  }
  EXPECT_EQ(list.all().size(), SkippedList::kMostListed);
  EXPECT_EQ(warnings.messages().size(), SkippedList::kMostLogged);
}

/// Caffe Datums of 3x4x5; those in `bad` are no Datums.
std::string write_datums(const std::string& directory, std::uint64_t count,
                         const std::set<std::uint64_t>& bad) {
  lmdb::Writer writer(directory, {});
  const std::vector<std::byte> pixels = test::counting_bytes(60);
  for (std::uint64_t id = 0; id < count; ++id) {
    const std::string key = std::to_string(1000 + id);
    const std::string value =
        bad.contains(id) ? "no Datum" : make_datum({3, 4, 5}, pixels, static_cast<int>(id));
    writer.put(std::as_bytes(std::span(key)), std::as_bytes(std::span(value)));
  }
  writer.commit();
  return directory;
}

TEST(Undecodable, TheCodecIsToldByTheFirstSampleThatTellsIt) {
  const TemporaryFolder folder;
  const std::string path = write_datums(folder.file("data"), 20, {0, 1, 2, 9});
  for (const std::string codec : {"auto", "datum"}) {
    for (const std::string schema : {"", "image:u8[3x4x5],label:i32[]"}) {
      LoaderOptions options(OrderOptions{.batch = 4}, RunOptions{.epochs = 1});
      options.codec = codec;
      options.schema = schema;
      options.decode = true;
      options.undecodable = Undecodable::skip;
      Loader loader = Loader::open(self_communicator(), path, options);
      EXPECT_EQ(to_string(loader.schema()), "image:u8[3x4x5],label:i32[]");
      std::uint64_t samples = 0;
      while (const auto batch = loader.next()) samples += batch->samples().size();
      EXPECT_EQ(samples, 16U);
      ASSERT_EQ(loader.skipped().size(), 4U);
      EXPECT_EQ(loader.skipped()[3].key, "1009");
    }
  }
}

TEST(Undecodable, WhereNothingDecodesTheMessageIsThatOfTheFirstSample) {
  const TemporaryFolder folder;
  const std::string path = write_datums(folder.file("data"), 3, {0, 1, 2});
  LoaderOptions options(OrderOptions{.batch = 1});
  options.codec = "datum";
  options.decode = true;
  options.undecodable = Undecodable::skip;
  try {
    Loader::open(self_communicator(), path, options);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), testing::HasSubstr("key 1000"));
  }
}

TEST(Undecodable, DamagedPagesFailAllTheSame) {
  const TemporaryFolder folder;
  const DecodedData data(folder.file("data"), 2000);
  LoaderOptions options = data.decoding(LoaderOptions(OrderOptions{.batch = 8}));
  options.undecodable = Undecodable::skip;
  options.order = OrderName::shuffled;
  options.window = 1;
  options.strategy = Strategy::lmm_dio_prov;
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  loader.next();
  std::filesystem::resize_file(folder.file("data") + "/data.mdb", 8192);
  EXPECT_THROW(while (loader.next()){}, Error);
}

}  // namespace
}  // namespace forebay
