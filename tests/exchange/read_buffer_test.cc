// Samples fetched ahead, on ranks as threads.
#include "exchange/read_buffer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/exchange_contract.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ReadBuffer, GivesSamplesInTheirOrder) {
  for (std::uint64_t seed = 1; seed <= test::random_cases(10U); ++seed) {
    const test::ExchangeCase one{.seed = seed,
                                 .buffers = 1 + static_cast<int>(seed % 3),
                                 .generations = 1 + static_cast<int>(seed % 4)};
    run_ranks(static_cast<int>(seed % 4) + 1, static_cast<int>(seed % 3),
              [&](const auto& comm) { test::check_read_buffer(comm, one); });
  }
}

/// An open share of ten samples, 100 bytes each, on every rank.
std::shared_ptr<Exchange> ten_samples(const std::shared_ptr<Communicator>& comm,
                                      ProgressThread& progress) {
  const auto node = comm->split_by_node();
  auto exchange =
      std::make_shared<Exchange>(ExchangeParts{.world = comm,
                                               .node = node,
                                               .board = std::make_shared<FailureBoard>(comm, node),
                                               .progress = &progress},
                                 ExchangeOptions{.share_bytes = 1000, .sample_bytes = 100});
  for (int i = 0; i < 10; ++i) {
    exchange->filling().append(std::vector<std::byte>(100, static_cast<std::byte>(i)));
  }
  exchange->open();
  return exchange;
}

/// `body` on each of `ranks`, on nodes of their own.
template <typename Body>
void with_samples(int ranks, Body body) {
  run_ranks(ranks, 1, [&](const auto& comm) {
    ProgressThread progress;
    body(*comm, ten_samples(comm, progress));
  });
}

ReadBuffer::Source endless(int owner) {
  return [owner] { return WantedBatch{.wanted = {{.owner = owner, .index = 3, .sample = 33}}}; };
}

TEST(ReadBuffer, MayBeDroppedAtAnyMoment) {
  with_samples(2, [](Communicator& comm, const auto& exchange) {
    for (int round = 0; round < 20; ++round) {
      ReadBuffer buffer(exchange, {.bytes = 1000, .blocks = 4}, endless(1 - comm.rank()));
      for (int i = 0; i < round % 7; ++i) {
        ASSERT_NE(buffer.next(), nullptr);
        buffer.release();
      }
    }
    // Also while it waits for a generation that nobody opens, and at the end of the source.
    for (int round = 0; round < 3; ++round) {
      const ReadBuffer waiting(exchange, {},
                               [] { return WantedBatch{.generation = 9, .wanted = {{}}}; });
      const ReadBuffer ended(exchange, {}, [] { return std::nullopt; });
      std::this_thread::sleep_for(milliseconds(round * 5));
    }
    exchange->check_others();
  });
}

TEST(ReadBuffer, TheThreadWaitsWhileTheRingIsFull) {
  with_samples(1, [](Communicator&, const auto& exchange) {
    std::atomic<int> asked = 0;
    ReadBuffer buffer(exchange, {.bytes = 100000, .blocks = 5}, [&asked] {
      ++asked;
      return WantedBatch{.wanted = {{.index = 1}}};
    });
    int taken = 0;
    // A loaded machine lets the thread come to its wait late, and then it is short.
    while (buffer.figures().full_seconds < 0.02) {
      for (int i = 0; i < 5; ++i) ASSERT_NE(buffer.next(), nullptr);
      taken += 5;
      while (asked <= taken) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(30));
      ASSERT_EQ(asked, taken + 1) << "one that waits for room";
      buffer.release(5);
      ASSERT_NE(buffer.next(), nullptr);
      buffer.release();
      ++taken;
    }
  });
}

TEST(ReadBuffer, ErrorsReachTheConsumerBehindTheSamplesBeforeThem) {
  with_samples(2, [](Communicator& comm, const auto& exchange) {
    ReadBuffer buffer(exchange, {}, [&comm, calls = 0]() mutable -> std::optional<WantedBatch> {
      if (comm.rank() == 1) return std::nullopt;
      if (calls++ < 3) return WantedBatch{.wanted = {{.owner = 1, .index = 2}}};
      return WantedBatch{.wanted = {{.owner = 1, .index = 10, .sample = 55}}};
    });
    if (comm.rank() == 1) {
      EXPECT_THROW(exchange->wait_opened(1), Error) << "the other rank's";
      return;
    }
    for (int i = 0; i < 3; ++i) {
      const Block* const block = buffer.next();
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(block->bytes[99], std::byte{2});
    }
    for (int again = 0; again < 2; ++again) {
      try {
        buffer.next();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.where().sample, 55U);
        EXPECT_THAT(error.what(), HasSubstr("rank 1 has no sample number 10"));
      }
    }
  });
}

TEST(ReadBuffer, AThrowingSourceEndsAllRanks) {
  with_samples(3, [](Communicator& comm, const auto& exchange) {
    ReadBuffer buffer(exchange, {}, [&comm]() -> std::optional<WantedBatch> {
      if (comm.rank() == 2) throw std::runtime_error("bad order");
      return WantedBatch{.generation = 1, .wanted = {{}}};
    });
    try {
      buffer.next();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("bad order"));
    }
  });
}

TEST(ReadBuffer, RefusesASampleThatIsLargerThanItself) {
  with_samples(1, [](Communicator&, const auto& exchange) {
    ReadBuffer buffer(exchange, {.bytes = 64}, endless(0));
    try {
      buffer.next();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.where().sample, 33U);
      EXPECT_THAT(error.what(), HasSubstr("100 bytes of rank 0"));
      EXPECT_THAT(error.what(), HasSubstr("raise --stage-bytes"));
    }
  });
}

TEST(ReadBuffer, TakesMemoryForALargeSampleWhereItMay) {
  with_samples(1, [](Communicator&, const auto& exchange) {
    ReadBuffer buffer(exchange, {.bytes = 64, .beside = 200}, endless(0));
    for (int i = 0; i < 5; ++i) {
      const Block* const block = buffer.next();
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(block->bytes.size(), 100U);
      buffer.release();
    }
  });
}

// `--buffers 1`: nothing is hidden behind computing.
TEST(ReadBuffer, FetchesNothingBeforeItIsAskedForWhereThatIsWanted) {
  with_samples(1, [](Communicator&, const auto& exchange) {
    ReadBuffer buffer(exchange, {.ahead = false}, endless(0));
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(exchange->figures().samples, 0U);
    std::vector<const Block*> samples;
    while (samples.size() < 3) buffer.take(3 - samples.size(), samples);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(exchange->figures().samples, 3U);
    buffer.release(3);
    EXPECT_NE(buffer.next(), nullptr);
  });
}

TEST(ReadBuffer, DoesNotWaitForEver) {
  with_samples(1, [](Communicator&, const auto& exchange) {
    ReadBuffer buffer(exchange, {.patience = milliseconds(50)},
                      [] { return WantedBatch{.generation = 5, .wanted = {{}}}; });
    EXPECT_THROW(buffer.next(), Error);
  });
}

// The consumer throws while the ring is full and the thread waits for it.
TEST(ReadBuffer, AThrowingConsumerEndsItsThread) {
  with_samples(2, [](Communicator& comm, const auto& exchange) {
    const auto consume = [&] {
      ReadBuffer buffer(exchange, {.blocks = 2}, endless(1 - comm.rank()));
      buffer.next();
      throw std::runtime_error("bad sample");
    };
    EXPECT_THROW(consume(), std::runtime_error);
    exchange->check_others();
  });
}

}  // namespace
}  // namespace forebay
