// The communicator's contract on real MPI, with whatever number of ranks the launcher has started.
#include <gtest/gtest.h>

#include <thread>

#include "comm/failure_board.hpp"
#include "comm/mpi/window.hpp"
#include "core/clock.hpp"
#include "forebay/mpi.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/communicator_contract.hpp"

namespace forebay {
namespace {

TEST(MpiCommunicator, KeepsTheContract) { test::check_communicator(*test::world()); }

TEST(MpiCommunicator, LeavesTheCallersCommunicatorAlone) {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  const auto duplicate = mpi_communicator(MPI_COMM_WORLD);
  MPI_Errhandler after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(before, MPI_ERRORS_ARE_FATAL);
  duplicate->barrier();
}

TEST(MpiCommunicator, GetsTheThreadLevelThatItAsksFor) {
  EXPECT_EQ(mpi_thread_level(), "MPI_THREAD_MULTIPLE");
  EXPECT_TRUE(test::world()->concurrent());
}

TEST(MpiWindow, GivesEachRankItsMemory) {
  const MpiWindow window = MpiWindow::allocate(MPI_COMM_WORLD, 4096, 0);
  EXPECT_EQ(window.bytes().size(), 4096U);
  EXPECT_NE(window.handle(), MPI_WIN_NULL);
}

// The others stop waiting after 5 s; the late one must neither hang nor spoil the end of the job.
TEST(MpiSharedMemory, MayBeGivenBackLate) {
  const auto world = test::world();
  if (world->size() != 2) GTEST_SKIP() << "once is enough";
  auto memory = world->share(4096, SharedMemoryKind::mpi);
  if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(6));
  const double begin = now_seconds();
  memory.reset();
  if (world->rank() == 1) {
    EXPECT_LT(now_seconds() - begin, 2);
  }
  world->barrier();
}

// Longer than one piece, and of a length that no piece divides.
TEST(MpiCommunicator, MovesMoreThanOnePiece) {
  const auto world = test::world();
  std::vector<float> values((std::size_t{5} << 20) + 3, 1.0F);
  world->all_reduce_sum(values);
  EXPECT_EQ(values.front(), static_cast<float>(world->size()));
  EXPECT_EQ(values.back(), static_cast<float>(world->size()));
  const std::string text((std::size_t{17} << 20) + 5, 'x');
  EXPECT_EQ(broadcast_text(*world, world->rank() == 0 ? text : "", 0), text);
  const auto all = world->gather(std::as_bytes(std::span(text)), 0);
  for (const auto& one : all) EXPECT_EQ(one.size(), text.size());
}

TEST(FailureBoard, CrossesVirtualNodesByMessage) {
  const auto world = test::world();
  const auto comm = world->split(0, world->rank());
  const auto node = comm->split(comm->rank() % 2, comm->rank());
  FailureBoard board(comm, node);
  comm->barrier();
  if (comm->rank() == comm->size() - 1) board.fail(Error(ErrorKind::io, "no disk"));
  const double begin = now_seconds();
  while (!board.failed() && now_seconds() - begin < 5) {
    board.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THROW(board.check(), Error);
  comm->barrier();
}

// MPI gives the next communicator the name of one that has ended, and with it what nobody received.
TEST(FailureBoard, NoFailureReachesTheBoardAfterIt) {
  const auto world = test::world();
  if (world->size() == 1) GTEST_SKIP() << "one rank";
  for (int round = 0; round < 10; ++round) {
    const auto comm = world->split(0, world->rank());
    FailureBoard board(comm, comm->split(comm->rank(), 0));
    comm->barrier();
    EXPECT_FALSE(board.failed()) << "round " << round;
    if (comm->rank() == round % comm->size()) board.fail(Error(ErrorKind::io, "no disk"));
    world->barrier();  // how the others hear of it: they do not look at the board any more
    const double begin = now_seconds();
    while (round % 2 == 0 && !board.failed() && now_seconds() - begin < 0.005) board.poll();
  }
  const auto comm = world->split(0, world->rank());
  FailureBoard board(comm, comm->split(comm->rank(), 0));
  for (int i = 0; i < 20; ++i) {
    board.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(board.failed());
  world->barrier();
}

}  // namespace
}  // namespace forebay
