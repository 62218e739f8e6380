// Samples that tell whose they are, and an exchange over any communicator that moves them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "exchange/exchange.hpp"
#include "exchange/read_buffer.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"

namespace forebay::test {

struct ExchangeCase {
  std::uint64_t seed = 1;
  std::uint64_t most_samples = 200;  ///< a rank; some have none
  std::uint64_t longest_sample = 5000;
  std::uint64_t sample_bytes = 0;  ///< 0: they differ, and some have no bytes
  int buffers = 1;
  int generations = 1;
  std::optional<Transport> transport = {};
  SharedMemoryKind memory = SharedMemoryKind::mpi;
  std::uint64_t longest_piece = std::uint64_t{1} << 30;
};

/// What every rank knows of every sample, without asking.
class ExpectedShares {
 public:
  explicit ExpectedShares(const ExchangeCase& wanted) : case_(wanted) {}

  std::uint64_t samples(std::uint64_t generation, int owner) const {
    const std::uint64_t value = mix(generation * 1000 + static_cast<std::uint64_t>(owner));
    return value % 5 == 0 ? 0 : value % (case_.most_samples + 1);
  }
  std::uint64_t bytes(std::uint64_t generation, int owner, std::uint64_t index) const {
    if (case_.sample_bytes != 0) return case_.sample_bytes;
    const std::uint64_t value = word(generation, owner, index);
    return value % 7 == 0 ? 0 : value % (case_.longest_sample + 1);
  }
  void write(std::uint64_t generation, const Wanted& wanted, std::span<std::byte> to) const {
    std::uint64_t value = word(generation, wanted.owner, wanted.index);
    for (std::size_t i = 0; i < to.size(); i += 8) {
      std::memcpy(to.data() + i, &value, std::min<std::size_t>(8, to.size() - i));
      value = value * 6364136223846793005U + 1442695040888963407U;
    }
  }
  bool holds(std::uint64_t generation, const Wanted& wanted, std::span<const std::byte> got) const {
    std::vector<std::byte> right(bytes(generation, wanted.owner, wanted.index));
    write(generation, wanted, right);
    return std::ranges::equal(right, got);
  }
  std::uint64_t share_bytes(std::uint64_t generation, int owner) const {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < samples(generation, owner); ++i)
      sum += bytes(generation, owner, i);
    return sum;
  }
  std::vector<Wanted> draw(std::uint64_t generation, int ranks, std::size_t count,
                           std::mt19937_64& random) const {
    std::vector<Wanted> all;
    for (int owner = 0; owner < ranks; ++owner) {
      for (std::uint64_t i = 0; i < samples(generation, owner); ++i) {
        all.push_back(
            {.owner = owner, .index = i, .sample = i * 100 + static_cast<unsigned>(owner)});
      }
    }
    std::vector<Wanted> drawn;
    while (!all.empty() && drawn.size() < count) drawn.push_back(all[random() % all.size()]);
    return drawn;
  }

 private:
  std::uint64_t word(std::uint64_t generation, int owner, std::uint64_t index) const {
    return mix(mix(generation * 4096 + static_cast<std::uint64_t>(owner)) + index);
  }
  std::uint64_t mix(std::uint64_t value) const {
    return std::mt19937_64(value * 2654435761U + case_.seed)();
  }

  ExchangeCase case_;
};

/// One rank's exchange with all that it stands on.
class ExchangeRank {
 public:
  ExchangeRank(const std::shared_ptr<Communicator>& world, const ExchangeCase& wanted)
      : comm(world->split(0, world->rank())), expected(wanted) {
    node = comm->split_by_node();
    board = std::make_shared<FailureBoard>(comm, node);
    ExchangeOptions options{.buffers = wanted.buffers,
                            .sample_bytes = wanted.sample_bytes,
                            .transport = wanted.transport,
                            .memory = wanted.memory,
                            .patience = std::chrono::seconds(20),
                            .filling_patience = std::chrono::seconds(20),
                            .longest_rest = std::chrono::milliseconds(2),
                            .longest_piece = wanted.longest_piece};
    for (int g = 0; g < wanted.generations; ++g) {
      options.share_bytes = std::max(options.share_bytes,
                                     expected.share_bytes(static_cast<unsigned>(g), comm->rank()));
    }
    exchange = std::make_shared<Exchange>(
        ExchangeParts{.world = comm, .node = node, .board = board, .progress = &progress}, options);
  }

  void fill(std::uint64_t generation) {
    HeldShare& share = exchange->filling();
    for (std::uint64_t i = 0; i < expected.samples(generation, comm->rank()); ++i) {
      const Wanted wanted{.owner = comm->rank(), .index = i};
      expected.write(generation, wanted, share.take(expected.bytes(generation, comm->rank(), i)));
    }
  }

  /// Fetches `wanted` in one call and looks at every byte.
  void fetch_and_check(std::uint64_t generation, const std::vector<Wanted>& wanted) {
    std::vector<std::vector<std::byte>> got;
    std::vector<std::span<std::byte>> to;
    for (const Wanted& one : wanted) {
      got.emplace_back(expected.bytes(generation, one.owner, one.index), std::byte{0xAA});
    }
    for (auto& bytes : got) to.emplace_back(bytes);
    exchange->fetch(generation, wanted, to);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(expected.holds(generation, wanted[i], got[i]))
          << "sample " << wanted[i].index << " of rank " << wanted[i].owner << " at rank "
          << comm->rank();
    }
  }

  std::shared_ptr<Communicator> comm;
  ExpectedShares expected;
  std::shared_ptr<Communicator> node;
  std::shared_ptr<FailureBoard> board;
  ProgressThread progress;
  std::shared_ptr<Exchange> exchange;
};

/// Every rank fetches random samples of all, with repeats, in several calls. Collective.
inline void check_fetches(const std::shared_ptr<Communicator>& comm, const ExchangeCase& wanted) {
  ExchangeRank rank(comm, wanted);
  EXPECT_FALSE(rank.exchange->describe().empty());
  std::mt19937_64 random(wanted.seed * 100 + static_cast<unsigned>(comm->rank()));
  rank.fill(0);
  EXPECT_EQ(rank.exchange->open(), 0U);
  std::uint64_t samples = 0;
  for (const std::size_t count : {0U, 1U, 7U, 300U}) {
    const auto drawn = rank.expected.draw(0, comm->size(), count, random);
    rank.fetch_and_check(0, drawn);
    samples += drawn.size();
  }
  EXPECT_EQ(rank.exchange->figures().samples, samples);
  rank.exchange->release(0);
}

/// One thread of each rank fills the shares again and again while another one reads. Collective.
inline void check_swapping(const std::shared_ptr<Communicator>& comm, const ExchangeCase& wanted) {
  ExchangeRank rank(comm, wanted);
  const auto generations = static_cast<std::uint64_t>(wanted.generations);
  std::thread reader([&] {
    std::mt19937_64 random(wanted.seed * 100 + static_cast<unsigned>(comm->rank()));
    for (std::uint64_t g = 0; g < generations; ++g) {
      for (int round = 0; round < 3; ++round) {
        rank.fetch_and_check(g, rank.expected.draw(g, comm->size(), random() % 50, random));
      }
      rank.exchange->release(g);
    }
  });
  for (std::uint64_t g = 0; g < generations; ++g) {
    rank.fill(g);
    EXPECT_EQ(g + 1 < generations ? rank.exchange->swap() : rank.exchange->open(), g);
  }
  reader.join();
}

/// Each rank consumes random samples through a small ring, several generations. Collective.
inline void check_read_buffer(const std::shared_ptr<Communicator>& comm,
                              const ExchangeCase& wanted) {
  ExchangeRank rank(comm, wanted);
  std::vector<WantedBatch> batches;
  std::mt19937_64 random(wanted.seed * 100 + static_cast<unsigned>(comm->rank()));
  for (std::uint64_t g = 0; g < static_cast<std::uint64_t>(wanted.generations); ++g) {
    for (int i = 0; i < 3; ++i) {
      batches.push_back({.generation = g,
                         .wanted = rank.expected.draw(g, comm->size(), random() % 80, random),
                         .last = i == 2});
    }
  }
  std::thread filler([&] {
    for (int g = 0; g < wanted.generations; ++g) {
      rank.fill(static_cast<unsigned>(g));
      rank.exchange->open();
      if (g + 1 < wanted.generations) rank.exchange->begin();
    }
  });
  {
    ReadBuffer buffer(rank.exchange, {.bytes = 4 * wanted.longest_sample + 64, .blocks = 16},
                      [next = std::size_t{0}, &batches]() mutable -> std::optional<WantedBatch> {
                        if (next == batches.size()) return std::nullopt;
                        return batches[next++];
                      });
    std::size_t held = 0;
    for (const WantedBatch& batch : batches) {
      for (const Wanted& one : batch.wanted) {
        const Block* const block = buffer.next();
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(block->wanted.sample, one.sample);
        EXPECT_TRUE(rank.expected.holds(batch.generation, one, block->bytes));
        // The largest sample has to find room besides what is held.
        if (++held == 2) buffer.release(2);
        held %= 2;
      }
    }
    EXPECT_EQ(buffer.next(), nullptr);
    EXPECT_EQ(buffer.next(), nullptr);
  }
  filler.join();
}

}  // namespace forebay::test
