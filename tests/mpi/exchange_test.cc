// The exchange over real MPI: plain copies, both transports, and the trial that chooses. How many
// ranks a node has is up to FOREBAY_RANKS_PER_NODE.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "comm/mpi_backend.hpp"
#include "core/clock.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/exchange_contract.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::ExchangeCase;

struct Way {
  const char* name;
  std::optional<Transport> transport;
  SharedMemoryKind memory;
};

class MpiExchange : public ::testing::TestWithParam<Way> {
 protected:
  ExchangeCase random_case(std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    ExchangeCase one{.seed = seed};
    one.most_samples = random() % 200;
    one.longest_sample = 1 + random() % 100000;
    if (random() % 3 == 0) one.sample_bytes = 1 + random() % 40000;
    if (random() % 2 == 0) one.longest_piece = 1000 + random() % 30000;
    one.transport = GetParam().transport;
    one.memory = GetParam().memory;
    return one;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Ways, MpiExchange,
    ::testing::Values(Way{"chosen", {}, SharedMemoryKind::mpi},
                      Way{"one_sided", Transport::one_sided, SharedMemoryKind::mpi},
                      Way{"two_sided", Transport::two_sided, SharedMemoryKind::mpi},
                      Way{"two_sided_short", Transport::two_sided_short, SharedMemoryKind::mpi},
                      Way{"one_sided_posix", Transport::one_sided, SharedMemoryKind::posix},
                      Way{"two_sided_posix", Transport::two_sided, SharedMemoryKind::posix}),
    [](const auto& way) { return std::string(way.param.name); });

/// False when the file at `path` has fewer bytes after a minute.
bool wait_for_bytes(const std::string& path, int bytes) {
  std::error_code missing;
  const double end = now_seconds() + 60;
  while (bytes > 0 && now_seconds() < end) {
    const auto size = std::filesystem::file_size(path, missing);
    if (!missing && size >= static_cast<std::uintmax_t>(bytes)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return bytes == 0;
}

TEST_P(MpiExchange, GivesEverySampleOfEveryRank) {
  for (std::uint64_t seed = 1; seed <= test::random_cases(3U); ++seed) {
    test::check_fetches(test::world(), random_case(seed));
  }
}

TEST_P(MpiExchange, RefillsSharesWhileOthersStillRead) {
  for (const int buffers : {1, 2}) {
    auto one = random_case(7);
    one.longest_sample = 4000;
    one.generations = 4;
    one.buffers = buffers;
    test::check_swapping(test::world(), one);
  }
}

TEST_P(MpiExchange, FeedsAReadBuffer) {
  auto one = random_case(11);
  one.buffers = 2;
  one.generations = 3;
  one.sample_bytes = 0;
  test::check_read_buffer(test::world(), one);
}

// The owner's main thread stays outside MPI until all others have what they asked for, of which it
// learns through a file.
TEST_P(MpiExchange, IsNotHeldUpByAnOwnerThatComputes) {
  const auto world = test::world();
  ExchangeCase one = random_case(3);
  one.sample_bytes = 3000;
  test::ExchangeRank rank(world, one);
  rank.fill(0);
  rank.exchange->open();
  std::optional<test::TemporaryFolder> folder;
  if (world->rank() == 0) folder.emplace();
  const std::string served = broadcast_text(*world, folder ? folder->file("served") : "", 0);
  if (world->rank() == 0) {
    EXPECT_TRUE(wait_for_bytes(served, world->size() - 1)) << rank.exchange->describe();
  } else {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20; ++i) {
      rank.fetch_and_check(0, rank.expected.draw(0, world->size(), 3, random));
    }
    std::ofstream(served, std::ios::app) << '.' << std::flush;
  }
  world->barrier();
}

// A rank that fails in the middle of reading: all others hear of it, and MPI still ends well.
TEST_P(MpiExchange, ThreadsEndWhenARankFails) {
  const auto world = test::world();
  if (world->size() == 1) GTEST_SKIP() << "nobody to fail";
  test::ExchangeRank rank(world, random_case(5));
  rank.fill(0);
  rank.exchange->open();
  world->barrier();  // or the failure finds others still in open()
  ReadBuffer buffer(rank.exchange, {.bytes = 1 << 20}, [&]() -> std::optional<WantedBatch> {
    if (world->rank() == 0) throw Error(ErrorKind::io, "no disk");
    std::mt19937_64 random(1);
    return WantedBatch{.wanted = rank.expected.draw(0, world->size(), 50, random)};
  });
  EXPECT_THROW(while (buffer.next() != nullptr) buffer.release(), Error);
  EXPECT_FALSE(mpi_backend().gave_up()) << "without MPI_Finalize, launchers call the job a failure";
  world->barrier();
}

}  // namespace
}  // namespace forebay
