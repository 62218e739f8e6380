// Sums among ranks as threads; tests/mpi holds the same against MPI.
#include "sync/summation.hpp"

#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/support/summation_contract.hpp"

namespace forebay {
namespace {

constexpr std::size_t kLengths[] = {0, 1, 3, 17, 1000, 4096, 9001};
constexpr std::size_t kFewLengths[] = {1, 5000};
constexpr std::size_t kLargest = std::size_t{1} << 20;

struct Layout {
  int ranks;
  int ranks_per_node;
};
constexpr Layout kFewLayouts[] = {{1, 0}, {3, 0}, {5, 2}};
constexpr Layout kLayouts[] = {{1, 0}, {2, 0}, {3, 0}, {8, 0}, {2, 1}, {4, 2}, {5, 2}, {7, 3}};

void check_everywhere(SyncAlgorithm algorithm, WireFormat wire,
                      std::span<const std::size_t> lengths,
                      std::span<const Layout> layouts = kLayouts) {
  for (const auto [ranks, ranks_per_node] : layouts) {
    run_ranks(ranks, ranks_per_node, [&](const std::shared_ptr<Communicator>& comm) {
      test::check_sums(*comm, {.algorithm = algorithm, .wire = wire, .largest = kLargest}, lengths);
    });
  }
}

TEST(Summation, ByMpiIsRightForAllTypesAndLayouts) {
  check_everywhere(SyncAlgorithm::mpi, WireFormat::as_is, kLengths);
}

TEST(Summation, DirectIsRightForAllTypesAndLayouts) {
  check_everywhere(SyncAlgorithm::direct, WireFormat::as_is, kLengths);
}

TEST(Summation, TwoLevelIsRightForAllTypesAndLayouts) {
  check_everywhere(SyncAlgorithm::two_level, WireFormat::as_is, kLengths);
}

TEST(Summation, LosesNoNan) {
  for (const auto algorithm :
       {SyncAlgorithm::mpi, SyncAlgorithm::direct, SyncAlgorithm::two_level}) {
    for (const auto [ranks, ranks_per_node] : kFewLayouts) {
      run_ranks(ranks, ranks_per_node, [&](const std::shared_ptr<Communicator>& comm) {
        test::check_nan(*comm, {.algorithm = algorithm, .largest = kLargest});
      });
    }
  }
}

TEST(Summation, SixteenBitsOnTheWireAreRoundedLittle) {
  for (const auto wire : {WireFormat::float16, WireFormat::bfloat16}) {
    check_everywhere(SyncAlgorithm::mpi, wire, kFewLengths, kFewLayouts);
    check_everywhere(SyncAlgorithm::direct, wire, kFewLengths, kFewLayouts);
    check_everywhere(SyncAlgorithm::two_level, wire, kFewLengths, kFewLayouts);
  }
}

TEST(Summation, WorksWithAnyNumberOfLanes) {
  for (const unsigned lanes : {1U, 3U}) {
    run_ranks(4, 2, [&](const std::shared_ptr<Communicator>& comm) {
      test::check_sums(*comm,
                       {.algorithm = SyncAlgorithm::two_level, .largest = kLargest, .lanes = lanes},
                       kFewLengths);
    });
  }
}

TEST(Summation, OfOneElementDependsOnNeitherPlaceNorRun) {
  for (const auto [ranks, ranks_per_node] : {Layout{5, 0}, Layout{6, 2}, Layout{5, 2}}) {
    run_ranks(ranks, ranks_per_node, [](const std::shared_ptr<Communicator>& comm) {
      test::check_determinism(*comm, SyncAlgorithm::direct);
      test::check_determinism(*comm, SyncAlgorithm::two_level);
      test::check_determinism(*comm, SyncAlgorithm::automatic);
    });
  }
}

TEST(Summation, OfAFullBufferIsRight) {
  constexpr std::size_t kElements[] = {kLargest / 8};
  for (const auto algorithm : {SyncAlgorithm::direct, SyncAlgorithm::two_level}) {
    run_ranks(3, 0, [&](const std::shared_ptr<Communicator>& comm) {
      test::check_sums(*comm, {.algorithm = algorithm, .largest = kLargest}, kElements);
    });
  }
}

TEST(Summation, IsNotDoneWhileARankIsMissing) {
  run_ranks(3, 0, [](const std::shared_ptr<Communicator>& comm) {
    Summations sums(*comm, {.algorithm = SyncAlgorithm::two_level, .largest = 1000});
    Summation& lane = sums.lane(0);
    const test::TestSum sum{.elements = 100};
    if (comm->rank() != 1) {
      test::start_sum(*comm, lane, sum);
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(lane.step().has_value());
    }
    comm->barrier();
    if (comm->rank() == 1) test::start_sum(*comm, lane, sum);
    test::expect_sum(*comm, sum, sum.type, test::finish_sum(lane));
    comm->barrier();
  });
}

TEST(Summation, RefusesMpiWhereResultsMustNotVary) {
  const auto comm = self_communicator();
  EXPECT_THROW(Summations(*comm, {.algorithm = SyncAlgorithm::mpi, .deterministic = true}), Error);
}

TEST(Summation, AutomaticLooksAtNodes) {
  run_ranks(4, 2, [](const std::shared_ptr<Communicator>& comm) {
    EXPECT_EQ(Summations(*comm, {.largest = 1000}).algorithm(), SyncAlgorithm::two_level);
    comm->barrier();
  });
  run_ranks(2, 1, [](const std::shared_ptr<Communicator>& comm) {
    const Summations sums(*comm, {.deterministic = true, .largest = 1000});
    EXPECT_EQ(sums.algorithm(), SyncAlgorithm::direct);
    comm->barrier();
  });
}

TEST(Wire, OnlyWideFloatsBecomeShorter) {
  for (const TensorType type : test::kTensorTypes) {
    EXPECT_EQ(wire_type(type, WireFormat::as_is), type);
    const bool wide = type == TensorType::float32 || type == TensorType::float64;
    EXPECT_EQ(wire_type(type, WireFormat::float16), wide ? TensorType::float16 : type);
    EXPECT_EQ(wire_type(type, WireFormat::bfloat16), wide ? TensorType::bfloat16 : type);
  }
}

}  // namespace
}  // namespace forebay
