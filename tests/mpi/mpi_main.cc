// gtest on many ranks: each rank runs all tests; the job fails when any rank does.
#include <gtest/gtest.h>

#include "tests/mpi/world.hpp"

namespace {
forebay::MpiSession* session = nullptr;
}

std::shared_ptr<forebay::Communicator> forebay::test::world() { return session->world(); }

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  forebay::MpiSession mpi;
  session = &mpi;
  if (mpi.world()->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new forebay::test::FailurePrinter(mpi.world()->rank()));
  }
  const int failed = RUN_ALL_TESTS();
  float sum = static_cast<float>(failed);
  mpi.world()->all_reduce_sum(std::span(&sum, 1));
  return sum > 0 ? 1 : 0;
}
