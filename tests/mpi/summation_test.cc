// Non-blocking collectives and sums on real MPI, with whatever ranks and nodes there are.
#include "sync/summation.hpp"

#include <gtest/gtest.h>

#include "forebay/error.hpp"
#include "tests/mpi/world.hpp"
#include "tests/support/nonblocking_contract.hpp"
#include "tests/support/summation_contract.hpp"

namespace forebay {
namespace {

constexpr std::size_t kLengths[] = {0, 1, 17, 5000};
constexpr std::size_t kFewLengths[] = {1, 5000};
constexpr std::size_t kLargest = std::size_t{4} << 20;

void check(SyncAlgorithm algorithm, WireFormat wire, std::span<const std::size_t> lengths) {
  test::check_sums(*test::world(), {.algorithm = algorithm, .wire = wire, .largest = kLargest},
                   lengths);
}

TEST(MpiNonblocking, KeepsTheContract) { test::check_nonblocking(*test::world()); }

/// Every one is kept by its operations, also behind the back of its maker.
TEST(MpiNonblocking, OutlivesItsMaker) {
  const auto world = test::world();
  auto collectives = world->nonblocking();
  test::SharedNumbers<double> numbers(100'000);
  std::ranges::fill(numbers.values(), 1);
  auto operation = collectives->all_reduce(numbers.bytes(), TensorType::float64, Combination::sum);
  collectives.reset();
  test::finish(operation);
  EXPECT_EQ(numbers.values().back(), world->size());
}

TEST(MpiSummation, IsRightForAllTypes) {
  check(SyncAlgorithm::mpi, WireFormat::as_is, kLengths);
  check(SyncAlgorithm::direct, WireFormat::as_is, kLengths);
  check(SyncAlgorithm::two_level, WireFormat::as_is, kLengths);
}

TEST(MpiSummation, LosesNoNan) {
  for (const auto algorithm :
       {SyncAlgorithm::mpi, SyncAlgorithm::direct, SyncAlgorithm::two_level}) {
    test::check_nan(*test::world(), {.algorithm = algorithm, .largest = kLargest});
  }
}

TEST(MpiSummation, IsRightWithSixteenBitsOnTheWire) {
  check(SyncAlgorithm::mpi, WireFormat::float16, kFewLengths);
  check(SyncAlgorithm::direct, WireFormat::bfloat16, kFewLengths);
  check(SyncAlgorithm::two_level, WireFormat::float16, kFewLengths);
}

TEST(MpiSummation, OfOneElementDependsOnNeitherPlaceNorRun) {
  test::check_determinism(*test::world(), SyncAlgorithm::direct);
  test::check_determinism(*test::world(), SyncAlgorithm::two_level);
}

TEST(MpiSummation, OfAFullBufferIsRight) {
  constexpr std::size_t kElements[] = {kLargest / 8};
  check(SyncAlgorithm::direct, WireFormat::as_is, kElements);
  check(SyncAlgorithm::two_level, WireFormat::as_is, kElements);
}

}  // namespace
}  // namespace forebay
