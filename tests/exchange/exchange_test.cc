// The exchange on ranks as threads, some of them on other nodes.
#include "exchange/exchange.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/exchange_contract.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

/// Any number of ranks, nodes, samples and sizes.
test::ExchangeCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::ExchangeCase one{.seed = seed};
  one.most_samples = random() % 150;
  one.longest_sample = 1 + random() % 3000;
  if (random() % 3 == 0) one.sample_bytes = 1 + random() % 2000;
  if (random() % 2 == 0) one.longest_piece = 1 + random() % 700;
  one.buffers = 1 + static_cast<int>(random() % 3);
  one.memory = random() % 2 == 0 ? SharedMemoryKind::mpi : SharedMemoryKind::posix;
  return one;
}

TEST(Exchange, GivesEverySampleOfEveryRank) {
  for (std::uint64_t seed = 1; seed <= test::random_cases(24U); ++seed) {
    const int ranks = static_cast<int>(seed % 8) + 1;
    const int per_node = static_cast<int>(seed % 4);
    run_ranks(ranks, per_node,
              [&](const auto& comm) { test::check_fetches(comm, random_case(seed)); });
  }
}

TEST(Exchange, RefillsSharesWhileOthersStillRead) {
  for (std::uint64_t seed = 1; seed <= test::random_cases(8U); ++seed) {
    auto one = random_case(seed);
    one.generations = 6;
    one.buffers = 1 + static_cast<int>(seed % 3);
    run_ranks(static_cast<int>(seed % 4) + 1, static_cast<int>(seed % 3),
              [&](const auto& comm) { test::check_swapping(comm, one); });
  }
}

/// `body` on two ranks with 10 samples each of 100 bytes.
template <typename Body>
void with_two_ranks(int per_node, Body body) {
  run_ranks(2, per_node, [&](const auto& comm) {
    test::ExchangeRank rank(comm, {.sample_bytes = 100});
    comm->barrier();
    body(rank);
    comm->barrier();
  });
}

TEST(Exchange, RefusesWhatNoShareHolds) {
  with_two_ranks(1, [](test::ExchangeRank& rank) {
    std::vector<std::byte> room(100);
    const std::vector<std::span<std::byte>> to{room};
    const std::uint64_t there = rank.expected.samples(0, 1);
    rank.fill(0);
    rank.exchange->open();
    const auto fails = [&](const Wanted& wanted) {
      try {
        rank.exchange->fetch(0, std::span(&wanted, 1), to);
        ADD_FAILURE() << "fetched";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::usage);
        EXPECT_EQ(error.where().sample, wanted.sample);
      }
    };
    fails({.owner = 1, .index = there, .sample = 77});
    fails({.owner = 2, .index = 0, .sample = 78});
    fails({.owner = -1, .index = 0, .sample = 79});
    room.resize(99);
    EXPECT_THROW(rank.exchange->bytes_of(1, {}), Error) << "not open";
    rank.exchange->release(0);
    EXPECT_THROW(rank.exchange->bytes_of(0, {}), Error) << "released";
  });
}

TEST(Exchange, RefusesRoomOfAnotherSize) {
  run_ranks(2, 1, [](const auto& comm) {
    test::ExchangeRank rank(comm, {.seed = 2, .sample_bytes = 100});
    rank.fill(0);
    rank.exchange->open();
    for (int owner = 0; owner < 2; ++owner) {
      if (rank.expected.samples(0, owner) == 0) continue;
      const Wanted wanted{.owner = owner};
      std::vector<std::byte> room(101);
      const std::vector<std::span<std::byte>> to{room};
      EXPECT_THROW(rank.exchange->fetch(0, std::span(&wanted, 1), to), Error);
      EXPECT_THROW(rank.exchange->fetch(0, std::span(&wanted, 1), {}), Error);
    }
  });
}

TEST(Exchange, RefusesImpossibleOptionsOnAllRanks) {
  run_ranks(3, 1, [](const auto& comm) {
    EXPECT_THROW(test::ExchangeRank(comm, {.buffers = comm->rank() == 2 ? 0 : 1}), Error);
    EXPECT_THROW(test::ExchangeRank(comm, {.longest_piece = 0}), Error);
  });
}

/// A petabyte a rank.
TEST(Exchange, NamesTheMemoryThatIsMissing) {
  run_ranks(2, 0, [](const auto& comm) {
    const auto node = comm->split_by_node();
    const auto board = std::make_shared<FailureBoard>(comm, node);
    try {
      const Exchange exchange({.world = comm, .node = node, .board = board},
                              {.share_bytes = std::uint64_t{1} << 50});
      ADD_FAILURE() << "allocated";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      EXPECT_THAT(error.what(), HasSubstr("2251799813685248 bytes"));
    }
  });
}

TEST(HeldShare, RefusesWhatDoesNotFit) {
  std::vector<std::byte> memory(100);
  HeldShare share(memory, 0);
  share.append(std::span(memory).first(60));
  EXPECT_EQ(share.room(), 40U);
  EXPECT_THROW(share.take(41), Error);
  EXPECT_THROW(share.take(~std::uint64_t{0}), Error);
  const std::vector<std::uint64_t> sizes{20, 0, 20};
  EXPECT_EQ(share.take(sizes).size(), 40U);
  EXPECT_EQ(share.samples(), 4U);
  EXPECT_EQ(share.ends().back(), 100U);
  HeldShare same(memory, 30);
  same.append(std::span(memory).first(30));
  EXPECT_THROW(same.take(29), Error);
  EXPECT_THROW(same.take(std::vector<std::uint64_t>{30, 30, 30}), Error);
  EXPECT_EQ(same.samples(), 1U);
}

TEST(Exchange, FillingAndOpeningTakeTurns) {
  run_ranks(2, 0, [](const auto& comm) {
    test::ExchangeRank rank(comm, {});
    EXPECT_THROW(rank.exchange->begin(), Error);
    rank.exchange->open();
    EXPECT_THROW(rank.exchange->filling(), Error);
    EXPECT_THROW(rank.exchange->open(), Error);
    rank.exchange->release(0);
    rank.exchange->begin();
    EXPECT_EQ(rank.exchange->filling().samples(), 0U);
  });
}

// One rank's failure ends the waits of the others, wherever they are.
TEST(Exchange, AFailureElsewhereEndsEveryWait) {
  run_ranks(3, 1, [](const auto& comm) {
    test::ExchangeRank rank(comm, {.generations = 2});
    const auto begin = std::chrono::steady_clock::now();
    try {
      if (comm->rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        rank.exchange->fail(Error(ErrorKind::io, "no disk"));
      }
      if (comm->rank() == 1) rank.exchange->wait_opened(0);
      rank.exchange->open();
      ADD_FAILURE() << "opened without all ranks";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("no disk"));
      EXPECT_EQ(error.where().rank, 0);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  });
}

// A rank that leaves takes its samples with it: the others must not wait for them for ever.
TEST(Exchange, ARankThatLeavesEarlyEndsTheOthers) {
  run_ranks(2, 1, [](const auto& comm) {
    test::ExchangeRank rank(comm, {});
    rank.exchange->open();
    if (comm->rank() == 1) {
      rank.exchange.reset();
      return;
    }
    EXPECT_THROW(rank.exchange->wait_opened(1), Error);
  });
}

}  // namespace
}  // namespace forebay
