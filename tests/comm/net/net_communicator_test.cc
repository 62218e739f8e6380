// The contracts of a communicator, over connections: tests/mpi holds the same against MPI.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "comm/failure_board.hpp"
#include "comm/net/net_communicator.hpp"
#include "comm/progress_thread.hpp"
#include "comm/remote_memory.hpp"
#include "core/clock.hpp"
#include "tests/support/communicator_contract.hpp"
#include "tests/support/exchange_contract.hpp"
#include "tests/support/net_ranks.hpp"
#include "tests/support/nonblocking_contract.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/stagger_race.hpp"
#include "tests/support/summation_contract.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::run_net_ranks;

TEST(NetCommunicator, KeepsTheContractForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_net_ranks(ranks, 0, [](const auto& comm) { test::check_communicator(*comm); });
  }
}

TEST(NetCommunicator, KeepsTheContractOfNonblockingOperations) {
  for (const int ranks : {1, 2, 3, 8}) {
    run_net_ranks(ranks, 0, [](const auto& comm) { test::check_nonblocking(*comm); });
  }
}

TEST(NetCommunicator, SplitsIntoVirtualNodes) {
  run_net_ranks(7, 3, [](const auto& comm) {
    const auto node = comm->split_by_node();
    EXPECT_EQ(node->size(), comm->rank() < 6 ? 3 : 1);
    EXPECT_EQ(node->rank(), comm->rank() % 3);
  });
}

/// Longer than pieces and socket buffers, and of lengths that nothing divides.
TEST(NetCommunicator, MovesMoreThanOnePiece) {
  run_net_ranks(3, 0, [](const auto& world) {
    constexpr std::size_t kMillion = test::kSanitized ? std::size_t{1} << 18 : std::size_t{1} << 20;
    std::vector<float> values(5 * kMillion + 3, 1.0F);
    values.back() = static_cast<float>(world->rank());
    world->all_reduce_sum(values);
    EXPECT_EQ(values.front(), 3.0F);
    EXPECT_EQ(values.back(), 3.0F);
    const std::string text(17 * kMillion + 5, 'x');
    EXPECT_EQ(broadcast_text(*world, world->rank() == 1 ? text : "", 1), text);
    const auto all = world->gather(std::as_bytes(std::span(text)), 0);
    for (const auto& one : all) EXPECT_EQ(one.size(), text.size());
    std::vector<std::byte> gathered(3 * text.size());
    world->all_gather(std::as_bytes(std::span(text)), gathered);
    EXPECT_EQ(gathered[2 * text.size() + 7], std::byte{'x'});
  });
}

TEST(NetCommunicator, SumsAreTheSameOnAllRanksAndInAllRuns) {
  std::vector<float> first;
  for (int run = 0; run < 3; ++run) {
    run_net_ranks(4, 0, [&](const auto& comm) {
      for (const std::size_t elements : {std::size_t{7}, std::size_t{30'001}}) {
        std::vector<float> values(elements);
        for (std::size_t i = 0; i < elements; ++i) {
          values[i] = 1.0F / static_cast<float>(i * 4 + static_cast<std::size_t>(comm->rank()) + 1);
        }
        comm->all_reduce_sum(values);
        const auto of_zero = values;
        comm->broadcast(std::as_writable_bytes(std::span(values)), 0);
        EXPECT_EQ(values, of_zero);
        if (comm->rank() == 0 && elements > 7) {
          if (first.empty()) first = values;
          EXPECT_EQ(values, first);
        }
      }
    });
  }
}

TEST(NetCommunicator, AWaitEndsByTheTimeout) {
  run_net_ranks(2, 0, [&](const auto& comm) {
    comm->set_timeout(std::chrono::milliseconds(50));
    if (comm->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return;
    }
    try {
      comm->barrier();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
      EXPECT_NE(error.happened().find("waited"), std::string::npos) << error.what();
    }
  });
}

TEST(NetCommunicator, AWaitEndsByTheInterrupt) {
  run_net_ranks(2, 0, [&](const auto& comm) {
    if (comm->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return;
    }
    comm->set_interrupt([] { throw Error(ErrorKind::cancelled, "enough"); });
    const double begin = now_seconds();
    try {
      comm->barrier();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.happened(), "enough");
    }
    EXPECT_LT(now_seconds() - begin, 0.25);
  });
}

/// Large, so that the wait mostly ends while it is on its way.
TEST(NetCommunicator, WhatWasGivenUpIsNotTouchedAnyMore) {
  run_net_ranks(2, 0, [&](const auto& world) {
    for (const int ms : {0, 1, 3, 10, 30}) {
      const auto comm = world->split(0, world->rank());
      std::vector<std::byte> data(std::size_t{test::kSanitized ? 4 : 32} << 20, std::byte{1});
      if (comm->rank() == 1) {
        std::ranges::fill(data, std::byte{0});
        comm->set_timeout(std::chrono::milliseconds(ms));
        comm->set_interrupt([] { throw Error(ErrorKind::cancelled, "enough"); });
      }
      bool whole = true;
      try {
        comm->broadcast(data, 0);
      } catch (const Error&) {
        whole = false;
        std::ranges::fill(data, std::byte{2});
      }
      world->barrier();
      const auto expected = whole ? std::byte{1} : std::byte{2};
      EXPECT_EQ(std::ranges::count(data, expected), std::ssize(data));
    }
  });
}

TEST(NetCommunicator, ARankThatEndsIsNotWaitedFor) {
  run_net_ranks(3, 0, [&](const auto& comm) {
    if (comm->rank() == 1) return;
    const double begin = now_seconds();
    try {
      comm->barrier();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
    }
    EXPECT_LT(now_seconds() - begin, 2);
  });
}

/// Messages that were sent right before the end arrive, and nobody takes the end for a death.
TEST(NetCommunicator, AnEndInGoodOrderIsNoDeath) {
  run_net_ranks(3, 0, [&](const auto& comm) {
    if (comm->rank() != 0) {
      comm->send(0, std::vector<std::byte>(3'000'000, std::byte{7}));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const int from : {2, 1}) {
      const auto message = receive(*comm, from, std::chrono::seconds(20), {}, "the last words");
      ASSERT_TRUE(message.has_value());
      EXPECT_EQ(message->size(), 3'000'000U);
    }
    EXPECT_NO_THROW(comm->check_ranks());
    EXPECT_NO_THROW(comm->send(1, {}));
  });
}

TEST(NetCommunicator, ManyCommunicatorsDoNotDisturbEachOther) {
  run_net_ranks(3, 0, [&](const auto& world) {
    for (int round = 0; round < 50; ++round) {
      const auto a = world->split(0, world->rank());
      const auto b = a->split(a->rank() % 2, 0);
      const auto word = static_cast<std::byte>(round);
      a->send((a->rank() + 1) % 3, {&word, 1});  // nobody receives it
      a->send_notice((a->rank() + 1) % 3, {&word, 1});
      b->barrier();
      a->barrier();
    }
    EXPECT_FALSE(world->try_receive(0).has_value());
    EXPECT_FALSE(world->poll_notice().has_value());
    world->barrier();
  });
}

TEST(NetCommunicator, AForkedChildLeavesItAlone) {
  run_net_ranks(2, 0, [&](const auto& comm) {
    comm->barrier();
    if (comm->rank() == 0) {
      const pid_t child = fork();
      if (child == 0) {
        int status = 1;
        try {
          comm->send(1, {});
        } catch (const Error& error) {
          status = error.kind() == ErrorKind::usage ? 0 : 2;
        }
        _exit(status);
      }
      int status = 0;
      waitpid(child, &status, 0);
    }
    comm->barrier();
    std::vector<float> values(100'000, 1);
    comm->all_reduce_sum(values);
    EXPECT_EQ(values.back(), 2);
  });
}

test::ExchangeCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  test::ExchangeCase one{.seed = seed};
  one.most_samples = random() % 150;
  one.longest_sample = 1 + random() % 100'000;
  if (random() % 3 == 0) one.sample_bytes = 1 + random() % 40'000;
  if (random() % 2 == 0) one.longest_piece = 1000 + random() % 30'000;
  one.buffers = 1 + static_cast<int>(random() % 2);
  return one;
}

TEST(NetExchange, GivesEverySampleOfEveryRank) {
  for (std::uint64_t seed = 1; seed <= test::random_cases(8U); ++seed) {
    run_net_ranks(static_cast<int>(seed % 5) + 1, static_cast<int>(seed % 3),
                  [&](const auto& comm) { test::check_fetches(comm, random_case(seed)); });
  }
}

TEST(NetExchange, RefillsSharesWhileOthersStillRead) {
  for (const int buffers : {1, 2}) {
    auto one = random_case(7);
    one.longest_sample = 4000;
    one.generations = 4;
    one.buffers = buffers;
    run_net_ranks(4, 2, [&](const auto& comm) { test::check_swapping(comm, one); });
  }
}

TEST(NetExchange, FeedsAReadBuffer) {
  auto one = random_case(11);
  one.buffers = 2;
  one.generations = 3;
  one.sample_bytes = 0;
  run_net_ranks(3, 1, [&](const auto& comm) { test::check_read_buffer(comm, one); });
}

TEST(NetExchange, RefusesPlacesThatNoMemoryHas) {
  run_net_ranks(2, 1, [](const auto& comm) {
    const auto node = comm->split_by_node();
    const auto memory = comm->expose(*node, 1000, SharedMemoryKind::posix);
    EXPECT_TRUE(memory->several_nodes());
    std::string why;
    EXPECT_EQ(memory->make_reader(Transport::two_sided, why), nullptr);
    EXPECT_FALSE(why.empty());
    const auto reader = memory->make_reader(Transport::one_sided, why);
    const auto far = memory->make_reader(Transport::one_sided, why);
    comm->barrier();
    std::vector<std::byte> room(10);
    for (const std::uint64_t offset : {std::uint64_t{991}, ~std::uint64_t{0} - 4}) {
      const auto one = memory->make_reader(Transport::one_sided, why);
      const RemotePiece piece{.owner = 1 - comm->rank(), .offset = offset, .to = room};
      one->start({&piece, 1});
      EXPECT_THROW(one->finish({.timeout = std::chrono::seconds(20), .interrupt = {}}), Error);
      EXPECT_TRUE(one->quiet());
      EXPECT_THROW(one->start({&piece, 1}), Error) << "it reads nothing more";
    }
    comm->barrier();
  });
}

TEST(NetSummation, IsRightForAllTypes) {
  constexpr std::size_t kLengths[] = {0, 1, 17, 5000};
  for (const int per_node : {0, 1, 2}) {
    run_net_ranks(3, per_node, [&](const auto& comm) {
      for (const auto algorithm :
           {SyncAlgorithm::mpi, SyncAlgorithm::direct, SyncAlgorithm::two_level}) {
        test::check_sums(*comm, {.algorithm = algorithm, .largest = std::size_t{4} << 20},
                         kLengths);
      }
    });
  }
}

TEST(NetStagger, NoMoreThanNReadAtOnceAndAllGetTheirTurns) {
  for (const auto by : {StaggerBy::token, StaggerBy::ticket}) {
    run_net_ranks(3, 0, [&](const auto& comm) {
      ProgressThread progress(std::chrono::milliseconds(5));
      test::check_race(*comm,
                       {.stagger = {.by = by, .group = 1, .end_turn = 30},
                        .first_turn = 20,
                        .end_turn = 30,
                        .some_have_nothing = true},
                       &progress);
      comm->barrier();
    });
  }
}

TEST(NetFailureBoard, CrossesVirtualNodesByMessage) {
  run_net_ranks(4, 2, [](const auto& world) {
    const auto comm = world->split(0, world->rank());
    FailureBoard board(comm, comm->split_by_node());
    comm->barrier();
    if (comm->rank() == 3) board.fail(Error(ErrorKind::io, "no disk"));
    const double begin = now_seconds();
    while (!board.failed() && now_seconds() - begin < 5) {
      board.poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THROW(board.check(), Error);
    comm->barrier();
  });
}

TEST(NetFile, IsReadByAll) {
  const test::TemporaryFolder folder;
  const auto bytes = test::counting_bytes(5000);
  test::write_bytes(folder.file("data"), bytes);
  run_net_ranks(2, 0, [&](const auto& comm) {
    const auto file = comm->open_together(folder.file("data"));
    std::vector<std::byte> got(100);
    const FilePiece piece{.offset = 1000, .into = got};
    file->read_all({&piece, 1});
    EXPECT_TRUE(std::ranges::equal(got, std::span(bytes).subspan(1000, 100)));
  });
}

}  // namespace
}  // namespace forebay
