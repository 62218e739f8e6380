// C where nobody gives one: a function of the data set, the ranks and the batch.
#include <gtest/gtest.h>

#include "forebay/order.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMany = std::uint64_t{1} << 24;

std::uint64_t of_samples(std::uint64_t bytes, std::uint64_t entries, int ranks,
                         std::uint64_t batch) {
  return automatic_coalesce(entries, entries * bytes, ranks, batch);
}

TEST(AutomaticCoalesce, GivesARankFourMebibytesInARow) {
  EXPECT_EQ(of_samples(4096, kMany, 4, 256), 16U);   // 64 samples, 256 KiB an iteration
  EXPECT_EQ(of_samples(4096, kMany, 16, 256), 64U);  // 64 KiB
  EXPECT_EQ(of_samples(4096, kMany, 4, 250), 17U);   // 249 KiB: rounded up
  EXPECT_EQ(of_samples(192 << 10, kMany, 4, 256), 1U);
}

TEST(AutomaticCoalesce, LeavesSixteenWindowsInAnEpoch) {
  EXPECT_EQ(of_samples(100, 16 * 256 * 5 + 1, 4, 256), 5U);
  EXPECT_EQ(of_samples(100, 16 * 256 - 1, 4, 256), 1U);
  EXPECT_EQ(of_samples(100, 100, 4, 256), 1U);
}

TEST(AutomaticCoalesce, IsOneForOneRankWhoseOrderItDoesNotChange) {
  EXPECT_EQ(of_samples(100, kMany, 1, 256), 1U);
}

TEST(AutomaticCoalesce, TakesAnyNumbers) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  EXPECT_EQ(automatic_coalesce(1, kAll, 4, 4), 1U);
  EXPECT_EQ(automatic_coalesce(std::uint64_t{1} << 48, kAll, 4, std::uint64_t{1} << 32), 1U);
  EXPECT_EQ(automatic_coalesce(1, 0, 4, 4), 1U);
  EXPECT_EQ(automatic_coalesce(kAll, 0, 4, kAll), 1U);
  EXPECT_EQ(automatic_coalesce(0, 100, 4, 4), 1U);
  EXPECT_EQ(automatic_coalesce(100, 100, 4, 0), 1U);
  // An order takes what comes out, also of samples of no size.
  const std::uint64_t empty = automatic_coalesce(kMany, 0, 1 << 14, 1 << 14);
  EXPECT_EQ(StridedOrder(kMany, 1 << 14, 1 << 14, empty).coalesce(), 64U);
}

}  // namespace
}  // namespace forebay
