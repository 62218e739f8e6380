// The interface's contract, on ranks as threads; tests/mpi holds the same against MPI.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "tests/support/communicator_contract.hpp"

namespace forebay {
namespace {

TEST(ThreadCommunicator, KeepsTheContractForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_ranks(ranks, 0, [](const auto& comm) { test::check_communicator(*comm); });
  }
}

TEST(ThreadCommunicator, SplitsIntoVirtualNodes) {
  run_ranks(7, 3, [](const auto& comm) {
    const auto node = comm->split_by_node();
    EXPECT_EQ(node->size(), comm->rank() < 6 ? 3 : 1);
    EXPECT_EQ(node->rank(), comm->rank() % 3);
  });
}

TEST(ThreadCommunicator, AWaitEndsByTheTimeout) {
  std::atomic<int> failures = 0;
  run_ranks(2, 0, [&](const auto& comm) {
    if (comm->rank() == 1) return;
    comm->set_timeout(std::chrono::milliseconds(50));
    try {
      comm->barrier();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
      ++failures;
    }
  });
  EXPECT_EQ(failures, 1);
}

TEST(ThreadCommunicator, AWaitEndsByTheInterrupt) {
  run_ranks(2, 0, [&](const auto& comm) {
    if (comm->rank() == 1) return;
    comm->set_interrupt([] { throw Error(ErrorKind::cancelled, "enough"); });
    EXPECT_THROW(comm->barrier(), Error);
  });
}

TEST(ThreadCommunicator, WhoHasGivenUpIsNotCounted) {
  std::atomic<bool> gave_up = false;
  run_ranks(2, 0, [&](const auto& comm) {
    comm->set_timeout(std::chrono::milliseconds(30));
    if (comm->rank() == 1) {
      while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THROW(comm->barrier(), Error) << "the memory of the other rank may be gone";
    gave_up = true;
  });
}

TEST(ThreadCommunicator, RethrowsWhatTheLowestRankThrew) {
  const auto run = [] {
    run_ranks(4, 0, [](const auto& comm) {
      collectively(*comm, [&] {
        if (comm->rank() >= 2) throw Error(ErrorKind::io, "disk " + std::to_string(comm->rank()));
      });
    });
  };
  try {
    run();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.where().rank, 2);
    EXPECT_EQ(error.happened(), "disk 2");
    EXPECT_EQ(error.kind(), ErrorKind::io);
  }
}

/// The error of rank 0 that fails so, and meets nobody.
Error alone_with(ErrorKind kind) {
  std::optional<Error> thrown;
  std::atomic<bool> gave_up = false;
  run_ranks(2, 0, [&](const auto& comm) {
    if (comm->rank() == 1) {
      while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    comm->set_timeout(kind == ErrorKind::communication ? std::chrono::hours(1)
                                                       : std::chrono::milliseconds(50));
    try {
      collectively(*comm, [&] { throw Error(kind, "its own"); });
    } catch (const Error& error) {
      thrown = error;
    }
    EXPECT_EQ(comm->timeout() < std::chrono::hours(1), kind != ErrorKind::communication);
    gave_up = true;
  });
  return *thrown;
}

TEST(ThreadCommunicator, TellsAnOwnFailureWhereTheOthersDoNotCome) {
  EXPECT_EQ(alone_with(ErrorKind::io).happened(), "its own");
}

TEST(ThreadCommunicator, WaitsForTheOthersOnlyOnce) {  // else for an hour
  EXPECT_EQ(alone_with(ErrorKind::communication).happened(), "its own");
}

TEST(SelfCommunicator, IsOneRank) { test::check_communicator(*self_communicator()); }

}  // namespace
}  // namespace forebay
