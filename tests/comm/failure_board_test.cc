#include "comm/failure_board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/clock.hpp"

namespace forebay {
namespace {

/// Polls as a loader does, until the board shows a failure or 5 s have passed.
void wait_for_failure(FailureBoard& board) {
  const double begin = now_seconds();
  while (!board.failed() && now_seconds() - begin < 5) {
    board.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(FailureBoard, ShowsTheFirstFailureToAllRanksOfAllNodes) {
  for (const int ranks_per_node : {0, 1, 2, 3}) {
    run_ranks(5, ranks_per_node, [](const auto& comm) {
      FailureBoard board(comm, comm->split_by_node());
      EXPECT_NO_THROW(board.check());
      comm->barrier();
      if (comm->rank() == 3) {
        board.fail(Error(ErrorKind::corrupt, "page 7 is torn", "copy it again", {.file = "a.mdb"}));
      }
      wait_for_failure(board);
      try {
        board.check();
        ADD_FAILURE() << "rank " << comm->rank() << " does not know";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        EXPECT_EQ(error.where().rank, 3);
        EXPECT_STREQ(error.what(), "rank 3: a.mdb: page 7 is torn; copy it again");
      }
      comm->barrier();
    });
  }
}

TEST(FailureBoard, KeepsTheFirstOfSeveralFailures) {
  run_ranks(4, 0, [](const auto& comm) {
    FailureBoard board(comm, comm->split_by_node());
    comm->barrier();
    board.fail(Error(ErrorKind::io, "mine"));
    std::string first;
    try {
      board.check();
    } catch (const Error& error) {
      first = error.what();
    }
    EXPECT_FALSE(first.empty());
    const auto all = comm->gather(std::as_bytes(std::span(first)), 0);
    for (const auto& text : all) EXPECT_EQ(text, all.front());
  });
}

TEST(FailureBoard, CarriesAMessageOfAnyLength) {
  const auto comm = self_communicator();
  FailureBoard board(comm, comm->split_by_node());
  board.fail(Error(ErrorKind::io, std::string(10000, 'x'), std::string(10000, 'y')));
  try {
    board.check();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), testing::StartsWith("rank 0: xxx"));
  }
}

}  // namespace
}  // namespace forebay
