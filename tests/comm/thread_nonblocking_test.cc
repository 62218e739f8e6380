#include "comm/thread_parts.hpp"

#include <gtest/gtest.h>

#include "tests/support/nonblocking_contract.hpp"

namespace forebay {
namespace {

TEST(ThreadNonblocking, KeepsTheContract) {
  for (const int ranks : {1, 2, 3, 8}) {
    run_ranks(ranks, 0,
              [](const std::shared_ptr<Communicator>& comm) { test::check_nonblocking(*comm); });
  }
}

TEST(ThreadNonblocking, OneProcessAloneIsDoneAtOnce) {
  const auto comm = self_communicator();
  const auto collectives = comm->nonblocking();
  test::SharedNumbers<float> numbers(3);
  numbers.values() = {1, 2, 3};
  EXPECT_TRUE(
      collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum)->done());
  EXPECT_EQ(numbers.values(), (std::vector<float>{1, 2, 3}));
}

TEST(ThreadNonblocking, IsNotDoneBeforeTheLastHasCome) {
  run_ranks(2, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto collectives = comm->nonblocking();
    test::SharedNumbers<float> numbers(1);
    auto operation = NonblockingCollectives::Operation();
    if (comm->rank() == 0) {
      operation = collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum);
      EXPECT_FALSE(operation->done());
    }
    comm->barrier();
    if (comm->rank() == 1) {
      operation = collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum);
    }
    comm->barrier();
    EXPECT_TRUE(operation->done());
  });
}

TEST(ThreadNonblocking, DifferentOperationsFailOnAllRanks) {
  run_ranks(3, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto collectives = comm->nonblocking();
    test::SharedNumbers<float> numbers(comm->rank() == 1 ? 2 : 1);
    const auto operation =
        collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum);
    comm->barrier();
    EXPECT_THROW(operation->done(), Error);
  });
}

TEST(ThreadNonblocking, ARankThatHasEndedIsNotWaitedFor) {
  const auto body = [](const std::shared_ptr<Communicator>& comm) {
    const auto collectives = comm->nonblocking();
    if (comm->rank() == 1) throw Error(ErrorKind::io, "no disk");
    const auto operation = collectives->barrier();
    try {
      while (!operation->done()) std::this_thread::yield();
      ADD_FAILURE() << "done without rank 1";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
    }
  };
  EXPECT_THROW(run_ranks(2, 0, body), Error);
}

/// What was given up keeps its memory until the others have come.
TEST(ThreadNonblocking, GivingUpLeavesTheOthersTheirMemory) {
  run_ranks(2, 0, [](const std::shared_ptr<Communicator>& comm) {
    const auto collectives = comm->nonblocking();
    if (comm->rank() == 0) {
      test::SharedNumbers<float> numbers(1000);
      const auto dropped =
          collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum);
    }
    comm->barrier();
    if (comm->rank() == 1) {
      test::SharedNumbers<float> numbers(1000);
      numbers.values().back() = 5;
      auto operation =
          collectives->all_reduce(numbers.bytes(), TensorType::float32, Combination::sum);
      test::finish(operation);
      EXPECT_EQ(numbers.values().back(), 5);
    }
  });
}

}  // namespace
}  // namespace forebay
