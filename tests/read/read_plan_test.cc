#include "read/read_plan.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using Extents = std::vector<Extent>;

std::vector<PlannedRead> reads_of(Extents extents, std::uint64_t gap) {
  return plan_reads(extents, gap).reads;
}

TEST(ReadPlan, JoinsNeighboursAndSmallGaps) {
  EXPECT_EQ(reads_of({{0, 10}, {10, 5}, {18, 2}}, 3), (std::vector<PlannedRead>{{0, 20, 0}}));
  EXPECT_EQ(reads_of({{0, 10}, {14, 2}}, 3), (std::vector<PlannedRead>{{0, 10, 0}, {14, 2, 10}}));
}

TEST(ReadPlan, SortsByOffsetAndKeepsOutliersApart) {
  EXPECT_EQ(reads_of({{4096, 4096}, {9 << 20, 4096}, {0, 4096}}, 64 << 10),
            (std::vector<PlannedRead>{{0, 8192, 0}, {9 << 20, 4096, 8192}}));
}

TEST(ReadPlan, ExtentsThatOverlapAreReadOnce) {
  EXPECT_EQ(reads_of({{0, 100}, {10, 20}, {50, 80}, {0, 100}}, 0),
            (std::vector<PlannedRead>{{0, 130, 0}}));
}

TEST(ReadPlan, NothingWantedIsNothingRead) {
  EXPECT_TRUE(reads_of({}, 10).empty());
  EXPECT_TRUE(reads_of({{5, 0}}, 10).empty());
}

TEST(ReadPlan, EveryExtentIsFoundWhereItWasPut) {
  std::mt19937_64 random(3);
  const auto pick = [&random](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  std::vector<std::byte> file(5000);
  for (auto& byte : file) byte = static_cast<std::byte>(pick(0, 255));
  for (int round = 0; round < 300 * test::test_scale(); ++round) {
    Extents wanted;
    for (std::uint64_t i = pick(0, 20); i > 0; --i) {
      const std::uint64_t offset = pick(0, 4990);
      wanted.push_back({offset, pick(1, std::min<std::uint64_t>(300, 5000 - offset))});
    }
    Extents sorted = wanted;
    const ReadPlan plan = plan_reads(sorted, pick(0, 100));
    std::vector<std::byte> memory(plan.bytes);
    std::uint64_t last_end = 0;
    for (const PlannedRead& read : plan.reads) {
      ASSERT_TRUE(last_end == 0 || read.offset > last_end);
      last_end = read.offset + read.length;
      std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(read.offset), read.length,
                  memory.begin() + static_cast<std::ptrdiff_t>(read.place));
    }
    const PlannedBytes bytes(plan, memory);
    for (const Extent& extent : wanted) {
      const auto found = bytes.at(extent.offset, extent.length);
      ASSERT_TRUE(std::equal(found.begin(), found.end(),
                             file.begin() + static_cast<std::ptrdiff_t>(extent.offset)));
    }
  }
}

TEST(ReadPlan, BytesThatNobodyAskedForAreAMismatch) {
  Extents extents = {{100, 50}, {1000, 50}};
  const ReadPlan plan = plan_reads(extents, 0);
  const std::vector<std::byte> memory(plan.bytes);
  const PlannedBytes bytes(plan, memory);
  EXPECT_NO_THROW(bytes.at(1000, 50));
  for (const Extent& wrong : Extents{{0, 1}, {99, 2}, {149, 2}, {150, 1}, {2000, 1}}) {
    EXPECT_THROW(bytes.at(wrong.offset, wrong.length), IndexMismatch) << wrong.offset;
  }
  const ReadPlan nothing;
  EXPECT_THROW(PlannedBytes(nothing, {}).at(0, 1), IndexMismatch);
}

}  // namespace
}  // namespace forebay
