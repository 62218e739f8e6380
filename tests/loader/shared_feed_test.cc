// The central contract (DESIGN 3) where samples come out of the memory of all ranks: whatever
// holds them, and on however many nodes, each rank gets what EpochOrder says, with liblmdb's bytes;
// and an epoch is the data set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/clock.hpp"
#include "forebay/error.hpp"
#include "tests/loader/random_loading.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using test::Deliveries;
using test::DrawData;
using test::LmdbBuilder;
using test::random_group;
using test::random_list;
using test::RandomChoice;
using test::TemporaryFolder;

constexpr OrderEnd kEnds[] = {OrderEnd::exact, OrderEnd::drop, OrderEnd::pad, OrderEnd::wrap};

/// What is tried: who holds what.
enum class Way { resident, rounds, held, reused };
constexpr Way kWays[] = {Way::resident, Way::rounds, Way::held, Way::reused};

/// An order that needs more than its name.
void choose_order(RandomChoice& choice, std::uint64_t entries, int& ranks, LoaderOptions& options) {
  constexpr OrderName kOrders[] = {OrderName::grouped, OrderName::shuffled, OrderName::listed};
  options.order = kOrders[choice.number(0, 2)];
  if (options.order == OrderName::grouped) options.group = random_group(choice, entries, ranks);
  if (options.order == OrderName::shuffled) options.keep = choice.number(1, std::min(entries, {5}));
  if (options.order == OrderName::listed) options.ids = random_list(choice, entries);
}

LoaderOptions random_options(RandomChoice& choice, std::uint64_t entries, int& ranks, Way way) {
  LoaderOptions options;
  options.order = OrderName::in_memory;
  options.reuse_scope = ReuseScope::global;
  if (way == Way::held || way == Way::reused) choose_order(choice, entries, ranks, options);
  if (way == Way::held) options.hold = Hold::memory;
  const bool reuses = way == Way::reused || choice.one_in(3);
  options.reuse = reuses ? choice.number(2, 3) : 1;
  if (options.order != OrderName::in_memory && choice.one_in(2)) {
    options.reuse_scope = ReuseScope::node;
  }
  const auto share = choice.number(1, 40 / static_cast<std::uint64_t>(ranks));
  options.batch = share * static_cast<std::uint64_t>(ranks);
  const bool equal_shares = options.order == OrderName::grouped && options.reuse > 1;
  if (!equal_shares) options.batch += choice.number(0, static_cast<std::uint64_t>(ranks) - 1);
  if (options.order == OrderName::in_memory) {
    if (choice.one_in(2)) options.group = choice.number(1, std::max<std::uint64_t>(entries / 4, 1));
    if (way == Way::rounds) options.ratio = 0.01 * static_cast<double>(choice.number(10, 99));
  }
  options.end = kEnds[choice.number(0, 3)];
  options.seed = choice.number(0, 1000);
  options.window = choice.number(1, 9);
  options.epochs = choice.number(1, 3);
  options.buffers = static_cast<int>(choice.number(1, 3));
  options.stage_bytes = std::uint64_t{24} << 20;
  options.timeout = std::chrono::seconds(20);
  options.strategy = static_cast<Strategy>(choice.number(0, 7));
  return options;
}

OrderOptions order_of(const DrawData& data, const LoaderOptions& options, int ranks,
                      int ranks_per_node) {
  OrderOptions order = data.order(options, ranks);
  order.ranks_per_node = ranks_per_node == 0 ? ranks : std::min(ranks_per_node, ranks);
  return order;
}

bool is_possible(const OrderOptions& order) {
  try {
    return EpochOrder(order, 0).steps() > 0;
  } catch (const Error&) {
    return false;
  }
}

void expect_right_samples(const DrawData& data, int ranks, int ranks_per_node,
                          const LoaderOptions& options, bool holds = true) {
  SCOPED_TRACE(data.path() + " ranks=" + std::to_string(ranks) +
               " per node=" + std::to_string(ranks_per_node) + " " + options.to_text());
  Deliveries deliveries;
  const OrderOptions order_options = order_of(data, options, ranks, ranks_per_node);
  run_ranks(ranks, ranks_per_node, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), options);
    std::uint64_t iteration = 0, dropped = 0;
    std::optional<Batch> held;
    for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
      const EpochOrder order(order_options, epoch);
      for (std::uint64_t step = 0; step < order.steps(); ++step) {
        auto batch = loader.next();
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->iteration(), iteration++);
        data.expect_batch(order, comm->rank(), step, *batch);
        deliveries.count(*batch);
        if (holds) held = std::move(batch);
      }
      dropped += order.dropped();
    }
    EXPECT_FALSE(loader.next());
    EXPECT_FALSE(loader.next());
    if (comm->rank() == 0) {
      EXPECT_EQ(loader.statistics().dropped, dropped);
    }
    // Loaders wait some seconds for each other's end, and a rank may lie further behind.
    comm->barrier();
  });
  if (options.end != OrderEnd::drop && options.order != OrderName::listed) {
    deliveries.expect_all(data.entries(), options.epochs, options.reuse);
  }
}

TEST(SharedFeed, DeliversWhatTheOrderSays) {
  TemporaryFolder folder;
  const DrawData all[] = {
      {folder.file("prime"), LmdbBuilder().in_order(211).values(0, 300)},
      {folder.file("mixed"), LmdbBuilder().random_order(150).values(0, 9000).delete_every(7)},
      {folder.file("same"), LmdbBuilder().in_order(101).values(3000)},
      {folder.file("one"), LmdbBuilder().in_order(1).values(5000)},
      {folder.file("few"), LmdbBuilder().in_order(5).values(3000)},
  };
  RandomChoice choice(11);
  std::size_t opened = 0;
  const auto rounds = static_cast<std::size_t>(test::long_cases(28));
  for (std::size_t round = 0; round < rounds; ++round) {
    const DrawData& data = all[choice.one_in(4) ? choice.number(3, 4) : choice.number(0, 2)];
    int ranks = static_cast<int>(choice.number(1, 8));
    const Way way = kWays[round % std::size(kWays)];
    const LoaderOptions options = random_options(choice, data.entries(), ranks, way);
    const int per_node = static_cast<int>(choice.number(0, 4));
    if (!is_possible(order_of(data, options, ranks, per_node))) continue;
    ++opened;
    const bool in_place = ranks == 1 && way != Way::held && way != Way::resident;
    expect_right_samples(data, ranks, per_node, options, !in_place);
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
  }
  EXPECT_GT(opened, rounds / 2);
}

LoaderOptions in_memory(std::uint64_t batch, double ratio = 1) {
  LoaderOptions options(OrderOptions{.batch = batch}, RunOptions{.epochs = 3});
  options.order = OrderName::in_memory;
  options.ratio = ratio;
  options.group = 5;
  options.stage_bytes = std::uint64_t{24} << 20;
  return options;
}

TEST(SharedFeed, HeldDataAreReadOnce) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(400).values(3000));
  LoaderOptions listed(OrderOptions{.batch = 16}, RunOptions{.epochs = 3});
  listed.order = OrderName::listed;
  listed.hold = Hold::memory;
  listed.ids = std::make_shared<const std::vector<std::uint64_t>>(
      std::vector<std::uint64_t>{399, 0, 399, 7, 7, 200});
  for (const LoaderOptions& options : {in_memory(16), listed}) {
    for (const int ranks : {1, 3}) {
      std::atomic<std::uint64_t> read = 0, requested = 0, fetched = 0;
      run_ranks(ranks, 2, [&](const auto& comm) {
        Loader loader = Loader::open(comm, data.path(), options);
        while (loader.next()) {
        }
        comm->barrier();
        const LoaderStatistics figures = loader.statistics();
        read += figures.samples_read;
        requested += figures.bytes_requested;
        fetched += figures.samples_fetched;
        comm->barrier();
      });
      EXPECT_EQ(read, 400U);
      EXPECT_LT(requested, 400U * 4096 * 2);
      EXPECT_EQ(fetched, options.order == OrderName::listed ? 18U : 1200U);
    }
  }
}

TEST(SharedFeed, ARoundIsReadOnceAnEpoch) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(400).values(3000));
  std::atomic<std::uint64_t> read = 0, far = 0, near = 0;
  run_ranks(4, 2, [&](const auto& comm) {
    Loader loader = Loader::open(comm, data.path(), in_memory(16, 0.25));
    while (loader.next()) {
    }
    const LoaderStatistics figures = loader.statistics();
    read += figures.samples_read;
    far += figures.far_bytes;
    near += figures.near_bytes;
  });
  EXPECT_EQ(read, 1200U);
  EXPECT_GT(far, 1200U * 3000 / 4);
  EXPECT_GT(near, 1200U * 3000 / 4);
}

TEST(SharedFeed, SamplesLargerThanAUsualWindowAreHeldToo) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(3).values(17 << 20));
  for (const double ratio : {1., 0.5}) {
    LoaderOptions options = in_memory(2, ratio);
    options.group = 1;
    options.stage_bytes = std::uint64_t{1} << 30;
    expect_right_samples(data, 2, 0, options, false);
  }
}

TEST(SharedFeed, AFewLargeSamplesAmongManySmallOnesAreHeldToo) {
  TemporaryFolder folder;
  std::vector<std::size_t> sizes(300, 100);
  for (const std::size_t i : {155, 156, 157}) sizes[i] = 8 << 20;  // none that is looked at
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(600).value_sizes(sizes));
  LoaderOptions options = in_memory(16);
  options.stage_bytes = std::uint64_t{2} << 30;
  expect_right_samples(data, 2, 0, options, false);
}

// The read buffer has 16 MiB.
TEST(SharedFeed, ASampleLargerThanTheReadBufferThatWasNotLookedAtIsDelivered) {
  TemporaryFolder folder;
  std::vector<std::size_t> sizes(300, 100);
  sizes[155] = 20 << 20;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(300).value_sizes(sizes));
  LoaderOptions options = in_memory(16);
  options.stage_bytes = std::uint64_t{2} << 30;
  for (const bool holds : {false, true}) expect_right_samples(data, 2, 0, options, holds);
}

TEST(SharedFeed, WaitingForASlowerRankIsSkew) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(500).values(3000));
  run_ranks(2, 0, [&](const auto& comm) {
    LoaderOptions options = in_memory(20, 0.2);
    options.epochs = 10;  // more than the read buffer of the slow rank takes
    Loader loader = Loader::open(comm, data.path(), options);
    while (loader.next()) {
      if (comm->rank() == 1) std::this_thread::sleep_for(milliseconds(4));
    }
    const LoaderStatistics figures = loader.statistics();
    if (comm->rank() == 0) {
      EXPECT_GT(figures.skew_seconds, 0.1);
      EXPECT_LT(figures.exposed_seconds, figures.skew_seconds);
    }
    comm->barrier();
  });
}

TEST(SharedFeed, WithOneBufferNothingIsFetchedAhead) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(400).values(3000));
  for (const double ratio : {1.0, 0.25}) {
    LoaderOptions options = in_memory(16, ratio);
    options.buffers = 1;
    run_ranks(2, 1, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      for (std::uint64_t batches = 0; batches < 5; ++batches) {
        std::this_thread::sleep_for(milliseconds(30));
        EXPECT_EQ(loader.statistics().samples_fetched, 8 * batches);
        ASSERT_TRUE(loader.next());
      }
      comm->barrier();
    });
  }
}

TEST(SharedFeed, BatchesLongerThanTheReadBufferAreWhole) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(60).values(50'000, 90'000));
  for (const double ratio : {1.0, 0.4}) {
    LoaderOptions options = in_memory(40, ratio);
    options.stage_bytes = std::uint64_t{24} << 20;
    expect_right_samples(data, 2, 0, options, false);
  }
}

TEST(SharedFeed, HeldBatchesAreRefusedAndNothingIsLost) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(300).values(50'000, 90'000));
  LoaderOptions options = in_memory(60);
  options.stage_bytes = std::uint64_t{40} << 20;
  const OrderOptions order_options = order_of(data, options, 1, 0);
  Loader loader = Loader::open(self_communicator(), data.path(), options);
  std::vector<Batch> held;
  int refused = 0;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochOrder order(order_options, epoch);
    for (std::uint64_t step = 0; step < order.steps();) {
      try {
        auto batch = loader.next();
        ASSERT_TRUE(batch);
        data.expect_batch(order, 0, step++, *batch);
        held.push_back(std::move(*batch));
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::usage) << error.what();
        ASSERT_FALSE(held.empty());
        held.erase(held.begin());
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(SharedFeed, ABatchOutlivesItsLoader) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(300).values(0, 3000));
  run_ranks(3, 0, [&](const auto& comm) {
    const LoaderOptions options = in_memory(30);
    std::optional<Batch> batch;
    {
      Loader loader = Loader::open(comm, data.path(), options);
      batch = loader.next();
    }
    data.expect_batch(EpochOrder(order_of(data, options, 3, 0), 0), comm->rank(), 0, *batch);
  });
}

// For the thread sanitizer. The batches outlive the loader: to release one would order the two
// threads.
TEST(SharedFeed, ClosingLooksAtNothingThatTheDecodingThreadWrites) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(40).values(48));
  LoaderOptions options = in_memory(16);
  options.end = OrderEnd::drop;
  options.codec = "raw";
  options.schema = "image:u8[48]";
  options.decode = true;
  for (int round = 0; round < 5; ++round) {
    run_ranks(2, 0, [&](const auto& comm) {
      std::vector<Batch> held;
      Loader loader = Loader::open(comm, data.path(), options);
      for (int step = 0; step < 2; ++step) held.push_back(std::move(*loader.next()));
      std::this_thread::sleep_for(milliseconds(20));  // the next epoch is drawn
    });
  }
}

TEST(SharedFeed, MayBeDroppedAtAnyMoment) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(2000).values(0, 9000));
  RandomChoice choice(3);
  for (int round = 0; round < test::long_cases(12); ++round) {
    LoaderOptions options = in_memory(20, round % 2 == 0 ? 1 : 0.2);
    options.epochs = 0;
    const auto batches = choice.number(0, 60);
    const milliseconds pause(choice.number(0, 8));
    const double begin = now_seconds();
    run_ranks(3, round % 3, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      for (std::uint64_t i = 0; i < batches; ++i) ASSERT_TRUE(loader.next());
      std::this_thread::sleep_for(pause * comm->rank());
    });
    EXPECT_LT(now_seconds() - begin, 10);
  }
}

// The last batches of the slow ones come from the quick one's memory.
TEST(SharedFeed, WhoEndsEarlierServesTheOthers) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(500).values(3000));
  for (const double ratio : {1.0, 0.3}) {
    LoaderOptions options = in_memory(20, ratio);
    options.epochs = 0;
    run_ranks(3, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(loader.next());
        if (comm->rank() == 1) std::this_thread::sleep_for(milliseconds(5));
      }
    });
  }
}

TEST(SharedFeed, WhatDoesNotFitIsRefusedWithNeededAndFreeBytes) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(1000).values(9000));
  for (const double ratio : {1.0, 0.7}) {
    LoaderOptions options = in_memory(20, ratio);
    options.stage_bytes = std::uint64_t{8} << 20;
    const double begin = now_seconds();
    std::atomic<int> refused = 0;
    run_ranks(4, 0, [&](const auto& comm) {
      try {
        Loader::open(comm, data.path(), options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_THAT(error.what(), testing::ContainsRegex("need [0-9]+ bytes.* leaves [0-9]+"));
        ++refused;
      }
    });
    EXPECT_EQ(refused, 4);
    EXPECT_LT(now_seconds() - begin, 5);
  }
}

TEST(SharedFeed, OneFailureEndsAllRanks) {
  TemporaryFolder folder;
  const DrawData data(folder.file("data"), LmdbBuilder().in_order(2000).values(3000));
  for (const double ratio : {1.0, 0.2}) {
    LoaderOptions options = in_memory(20, ratio);
    options.epochs = 0;
    std::atomic<int> failed = 0;
    const double begin = now_seconds();
    run_ranks(4, 2, [&](const auto& comm) {
      Loader loader = Loader::open(comm, data.path(), options);
      try {
        for (int i = 0;; ++i) {
          ASSERT_TRUE(loader.next());
          if (i == 30 && comm->rank() == 2) loader.fail(Error(ErrorKind::io, "the roof leaks"));
        }
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("the roof leaks"));
        ++failed;
      }
    });
    EXPECT_EQ(failed, 4);
    EXPECT_LT(now_seconds() - begin, 5);
  }
}

}  // namespace
}  // namespace forebay
