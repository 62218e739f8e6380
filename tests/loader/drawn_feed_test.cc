// The central contract (DESIGN 3) for orders that are new in every epoch: whatever the strategy,
// engine, number of buffers and node layout, each rank gets what EpochOrder says, with liblmdb's
// bytes; and an epoch is the data set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "format/registry.hpp"
#include "loader/node_list.hpp"
#include "read/stage_filler.hpp"
#include "tests/loader/random_loading.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::Deliveries;
using test::DrawData;
using test::LmdbBuilder;
using test::random_group;
using test::random_list;
using test::RandomChoice;
using test::TemporaryFolder;

constexpr Strategy kStrategies[] = {Strategy::automatic,    Strategy::lmdb,
                                    Strategy::lmm,          Strategy::lmm_dm,
                                    Strategy::lmm_dio,      Strategy::lmm_dio_prov,
                                    Strategy::lmm_dio_prov, Strategy::lmm_dio_prov_coal_stag};
constexpr OrderName kOrders[] = {OrderName::grouped, OrderName::shuffled, OrderName::listed,
                                 OrderName::in_memory};
constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap};

/// Reads `options.epochs` epochs.
void expect_right_samples(const DrawData& data, int ranks, int ranks_per_node,
                          const LoaderOptions& options) {
  SCOPED_TRACE(data.path() + " ranks=" + std::to_string(ranks) +
               " per node=" + std::to_string(ranks_per_node) + " " + options.to_text());
  Deliveries deliveries;
  const OrderOptions order_options = data.order(options, ranks);
  run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    std::uint64_t iteration = 0, dropped = 0;
    for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
      const EpochOrder order(order_options, epoch);
      for (std::uint64_t step = 0; step < order.steps(); ++step) {
        const auto batch = loader.next();
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->iteration(), iteration++);
        data.expect_batch(order, comm->rank(), step, *batch);
        deliveries.count(*batch);
      }
      dropped += order.dropped();
    }
    EXPECT_FALSE(loader.next());
    EXPECT_FALSE(loader.next());
    if (comm->rank() == 0) {
      EXPECT_EQ(loader.statistics().dropped, dropped);
    }
  });
  if (options.end != OrderEnd::drop && options.order != OrderName::listed) {
    deliveries.expect_all(data.entries(), options.epochs, options.reuse);
  }
}

/// Options that are valid for `entries` samples on `ranks` ranks.
LoaderOptions random_options(RandomChoice& choice, std::uint64_t entries, int& ranks,
                             std::size_t round) {
  LoaderOptions options;
  options.order = kOrders[round % std::size(kOrders)];
  options.strategy = kStrategies[round / std::size(kOrders) % std::size(kStrategies)];
  options.end = choice.of(kEnds);
  if (options.order == OrderName::in_memory) ranks = 1;
  if (options.order == OrderName::grouped) options.group = random_group(choice, entries, ranks);
  options.batch = choice.number(static_cast<std::uint64_t>(ranks), 40);
  if (options.order == OrderName::shuffled) options.keep = choice.number(1, std::min(entries, {5}));
  if (options.order == OrderName::listed) options.ids = random_list(choice, entries);
  if (options.order == OrderName::in_memory) {
    options.group = choice.number(1, std::max<std::uint64_t>(entries / 4, 1));
    options.ratio = entries >= 4 ? 0.25 * static_cast<double>(choice.number(1, 4)) : 1;
    options.reuse_scope = ReuseScope::global;
  }
  options.seed = choice.number(0, 1000);
  options.reuse = choice.one_in(3) ? choice.number(2, 3) : 1;
  options.window = choice.number(1, 9);
  options.epochs = choice.number(1, 3);
  options.buffers = static_cast<int>(choice.number(1, 3));
  options.one_at_a_time = choice.one_in(2);
  options.stage_bytes = std::uint64_t{64} << 20;
  if (options.strategy != Strategy::lmdb) {
    options.roots = static_cast<int>(choice.number(0, 4)) - 1;
    if (options.roots != kEveryRank) options.stagger = static_cast<int>(choice.number(0, 2));
    if (choice.one_in(3)) options.stagger_by = StaggerBy::ticket;
    if (choice.one_in(4)) options.locate = static_cast<Locate>(choice.number(0, 5));
    if (choice.one_in(2)) options.engine = static_cast<ReadEngine>(choice.number(0, 3));
  }
  return options;
}

bool has_batches(const DrawData& data, const LoaderOptions& options, int ranks) {
  try {
    return EpochOrder(data.order(options, ranks), 0).steps() > 0;
  } catch (const Error&) {
    return false;  // `drop` leaves nothing
  }
}

TEST(DrawnFeed, NoStrategyChangesWhatAnOrderDelivers) {
  TemporaryFolder folder;
  const DrawData all[] = {
      {folder.file("small"), LmdbBuilder().in_order(211).values(0, 300)},
      {folder.file("mixed"), LmdbBuilder().random_order(150).values(0, 9000).delete_every(7)},
      {folder.file("one"), LmdbBuilder().in_order(1).values(5000)},
      {folder.file("few"), LmdbBuilder().in_order(5).values(3000)},
  };
  RandomChoice choice(7);
  std::size_t opened = 0;
  const auto rounds = static_cast<std::size_t>(test::long_cases(160));
  for (std::size_t round = 0; round < rounds; ++round) {
    const DrawData& data = all[choice.one_in(4) ? choice.number(2, 3) : choice.number(0, 1)];
    int ranks = static_cast<int>(choice.number(1, 8));
    const LoaderOptions options = random_options(choice, data.entries(), ranks, round);
    if (!has_batches(data, options, ranks)) continue;
    ++opened;
    expect_right_samples(data, ranks, static_cast<int>(choice.number(0, 4)), options);
  }
  EXPECT_GT(opened, rounds * 5 / 8);
}

TEST(DrawnFeed, BatchesOfManySmallBuffersAreWhole) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(101).values(0, 5000));
  for (const int buffers : {1, 2, 3}) {
    for (const std::uint64_t group : {1, 2, 5}) {
      LoaderOptions options(OrderOptions{.batch = 23}, RunOptions{.epochs = 2});
      options.order = OrderName::grouped;
      options.group = group;
      options.buffers = buffers;
      for (const int roots : {kEveryRank, 1, 2}) {
        options.roots = roots;
        expect_right_samples(data, 2, 0, options);
      }
    }
  }
}

/// Bytes that all ranks of one node have asked for in an epoch.
std::uint64_t bytes_asked_for(const DrawData& data, int ranks, const LoaderOptions& options) {
  std::atomic<std::uint64_t> bytes = 0;
  run_ranks(ranks, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    while (loader.next()) {
    }
    bytes += loader.statistics().bytes_requested;
  });
  return bytes;
}

std::uint64_t bytes_of(const DataSet& set, const std::vector<IdRun>& ids) {
  std::uint64_t bytes = 0;
  const auto plan = set.plan_runs(ids);
  for (const FileExtent& extent : plan->extents()) bytes += extent.length;
  return bytes;
}

/// Pages that the windows of `options` need on one node, each once a window.
std::uint64_t bytes_of_windows(const DataSet& set, const OrderOptions& order) {
  NodeShare share{.ranks = {}, .own = 0, .root = 0, .roots = 1};
  for (int rank = 0; rank < order.ranks; ++rank) share.ranks.push_back(rank);
  NodeList list(order, RunEpochs(order, {.start = {}, .epochs = 1}), DrawWindows(order, false),
                share);
  std::uint64_t bytes = 0;
  for (std::uint64_t window = 0; list.iterations(window) > 0; ++window) {
    bytes += bytes_of(set, PlannedSamples(list.runs({.window = window})).ids());
  }
  return bytes;
}

TEST(DrawnFeed, APageThatRanksOfANodeShareIsReadOnceInAWindow) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(4000).values(300));
  LoaderOptions options(OrderOptions{.batch = 80}, RunOptions{.epochs = 1});
  options.engine = ReadEngine::pread;
  options.gap_bytes = 0;
  constexpr int kRanks = 8;
  // To find out where samples are: all leaves, and the pages above them.
  const auto set = open_data_set(data.path(), {});
  const std::uint64_t scan = bytes_of(*set, {{0, data.entries()}}) + 9 * 4096;
  for (const OrderName order : {OrderName::shuffled, OrderName::grouped}) {
    options.order = order;
    options.group = 50;
    options.roots = 1;
    const std::uint64_t needed = bytes_of_windows(*set, data.order(options, kRanks));
    const std::uint64_t by_one = bytes_asked_for(data, kRanks, options) - scan;
    EXPECT_LE(by_one, needed + needed / 20) << to_string(order);
    options.roots = kEveryRank;
    const std::uint64_t by_each = bytes_asked_for(data, kRanks, options) - scan;
    EXPECT_GT(by_each, by_one) << to_string(order);
    // Leaves of samples in random places are kept, by whoever reads.
    if (order == OrderName::shuffled) {
      EXPECT_GT(by_each, by_one * kRanks / 2);
    }
  }
}

TEST(DrawnFeed, AllRanksHaveTheSameIterationsAlsoWithoutSamples) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(3).values(100));
  LoaderOptions options(OrderOptions{.batch = 8}, RunOptions{.iterations = 50});
  options.order = OrderName::shuffled;
  std::atomic<std::uint64_t> samples = 0;
  run_ranks(8, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    std::uint64_t iterations = 0;
    for (; auto batch = loader.next(); ++iterations) samples += batch->samples().size();
    EXPECT_EQ(iterations, 50U);
  });
  EXPECT_EQ(samples, 150U);
}

TEST(DrawnFeed, ALimitKeepsTheReaderFromReadingAheadOfIt) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(1000).values(3000));
  LoaderOptions options(OrderOptions{.batch = 10}, RunOptions{.iterations = 8});
  options.order = OrderName::shuffled;
  options.strategy = Strategy::lmm_dio_prov;
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  while (loader.next()) {
  }
  EXPECT_LT(loader.statistics().bytes_requested, 80U * 2 * 4096 + 100 * 4096);
}

TEST(DrawnFeed, HeldBatchesStayUntouchedAndTooManyAreRefused) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(60).values(50));
  LoaderOptions options(OrderOptions{.batch = 10});
  options.order = OrderName::shuffled;
  options.window = 1;
  options.buffers = 3;
  const EpochOrder order(data.order(options, 1), 0);
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  std::vector<Batch> held;
  for (int i = 0; i < 3; ++i) held.push_back(*loader.next());
  EXPECT_THROW(loader.next(), Error);
  for (std::uint64_t step = 0; step < 3; ++step) data.expect_batch(order, 0, step, held[step]);
  held.erase(held.begin() + 1);
  EXPECT_THROW(loader.next(), Error) << "the oldest still holds its buffer";
  held.erase(held.begin());
  data.expect_batch(order, 0, 3, *loader.next());
  data.expect_batch(order, 0, 2, held[0]);
}

TEST(DrawnFeed, ABatchOutlivesItsLoader) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(50).values(50));
  LoaderOptions options(OrderOptions{.batch = 8});
  options.order = OrderName::shuffled;
  std::optional<Batch> batch;
  {
    Loader loader = Loader::open(self_communicator(), data.path(), options);
    batch = loader.next();
  }
  data.expect_batch(EpochOrder(data.order(options, 1), 0), 0, 0, *batch);
}

TEST(DrawnFeed, MayBeDroppedAtAnyMoment) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(500).values(0, 6000));
  LoaderOptions options(OrderOptions{.batch = 12});
  options.order = OrderName::grouped;
  options.group = 50;
  const double begin = now_seconds();
  for (int batches = 0; batches < 12; ++batches) {
    options.strategy = kStrategies[static_cast<std::size_t>(batches) % std::size(kStrategies)];
    run_ranks(3, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      // Each rank for itself: who goes on does not need those who have left.
      for (int i = 0; i < batches + 20 * comm->rank(); ++i) ASSERT_TRUE(loader.next());
    });
    if (options.strategy == Strategy::lmdb) continue;
    options.roots = 1;
    run_ranks(3, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      // Who goes on needs the root alone.
      for (int i = 0; i < batches + 20 * (2 - comm->rank()); ++i) ASSERT_TRUE(loader.next());
    });
    options.roots = 0;
  }
  EXPECT_LT(now_seconds() - begin, 30);
}

/// Whether all ranks hear of it where so many roots read for them.
void expect_one_message_of_a_cut_file(int roots) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(400).values(3000));
  LoaderOptions options(OrderOptions{.batch = 8});
  options.roots = roots;
  options.order = OrderName::shuffled;
  options.window = 1;
  options.strategy = Strategy::lmm_dio_prov;
  std::vector<std::string> messages(4);
  run_ranks(4, 0, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    comm->barrier();
    if (comm->rank() == 0) std::filesystem::resize_file(folder.file("data") + "/data.mdb", 8192);
    comm->barrier();
    const double begin = now_seconds();
    try {
      while (now_seconds() - begin < 10) loader.next();
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(comm->rank())] = error.what();
    }
    EXPECT_LT(now_seconds() - begin, 5);
    comm->barrier();
  });
  EXPECT_THAT(messages[0], testing::HasSubstr("data.mdb"));
  EXPECT_THAT(messages, testing::Each(messages[0]));
}

TEST(DrawnFeed, AFileThatIsCutFailsOnAllRanksWithOneMessage) {
  expect_one_message_of_a_cut_file(kEveryRank);
  expect_one_message_of_a_cut_file(1);
  expect_one_message_of_a_cut_file(2);
}

TEST(DrawnFeed, ABufferThatDoesNotFitSaysWhatToDo) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(200).values(9000));
  LoaderOptions options(OrderOptions{.batch = 8});
  options.order = OrderName::grouped;
  options.group = 100;
  options.stage_bytes = 256 << 10;
  try {
    Loader::open(self_communicator(), data.path(), options).next();
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("--stage-bytes"), testing::HasSubstr("--group")));
  }
}

TEST(DrawnFeed, AListIsReadFromAFile) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(50).values(50));
  std::ofstream(folder.file("list")) << "7 3\n\n 49\t0 7\n";
  LoaderOptions options(OrderOptions{.batch = 2}, RunOptions{.epochs = 1});
  options.order = OrderName::listed;
  options.list = folder.file("list");
  run_ranks(2, 0, [&](const auto& comm) {
    std::vector<std::uint64_t> ids;
    Loader loader = Loader::open(comm, data.path(), options);
    while (const auto batch = loader.next()) {
      for (const Sample& sample : batch->samples()) ids.push_back(sample.id);
    }
    if (comm->rank() == 0) {
      EXPECT_EQ(ids, (std::vector<std::uint64_t>{7, 49}));
    } else {
      EXPECT_EQ(ids, (std::vector<std::uint64_t>{3, 0, 7}));
    }
  });
}

// Something without an end, or as large as a disk, is told from a list by its first word.
TEST(DrawnFeed, WhatCannotBeAListIsReadNoFurther) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(50).values(50));
  LoaderOptions options(OrderOptions{.batch = 2});
  options.order = OrderName::listed;
  for (const std::string& path : {std::string("/dev/zero"), folder.file("data")}) {
    options.list = path;
    const Error error =
        test::error_from([&] { Loader::open(self_communicator(), data.path(), options); });
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
    EXPECT_THAT(error.what(), testing::HasSubstr("list"));
    EXPECT_LT(std::string(error.what()).size(), 400U);
  }
}

TEST(DrawnFeed, AListWithOtherWordsIsRefused) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(50).values(50));
  const auto message = [&](const std::string& text) -> std::string {
    std::ofstream(folder.file("list")) << text;
    LoaderOptions options(OrderOptions{.batch = 2});
    options.order = OrderName::listed;
    options.list = folder.file("list");
    try {
      Loader::open(self_communicator(), data.path(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "opened";
  };
  EXPECT_THAT(message("3\n4 x5"), testing::HasSubstr("line 2 of the list has 'x5'"));
  EXPECT_THAT(message("3 -1"), testing::HasSubstr("'-1'"));
  EXPECT_THAT(message(""), testing::HasSubstr("empty"));
  EXPECT_THAT(message("50"), testing::HasSubstr("is no sample"));
}

}  // namespace
}  // namespace forebay
