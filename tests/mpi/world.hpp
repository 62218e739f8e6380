// What tests on real MPI ranks share.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "forebay/mpi_session.hpp"

namespace forebay::test {

/// MPI_COMM_WORLD, or our duplicate of it.
std::shared_ptr<Communicator> world();

/// Says nothing but what failed, and on which rank.
class FailurePrinter : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                 result.summary());
  }

 private:
  int rank_;
};

}  // namespace forebay::test
