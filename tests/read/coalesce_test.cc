#include "read/coalesce.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// 4 KiB a sample, a node takes 64 of 256 samples: 256 KiB an iteration.
CoalesceFacts facts() {
  return {.entries = 1 << 20,
          .stored_bytes = std::uint64_t{4096} << 20,
          .batch = 256,
          .node_share = 64,
          .buffer_bytes = kGiB};
}

TEST(Coalesce, MakesAWindowAsLargeAsReadsNeed) { EXPECT_EQ(choose_coalesce(facts()), 256U); }

TEST(Coalesce, StaysWithinHalfABuffer) {
  CoalesceFacts small = facts();
  small.buffer_bytes = 4 << 20;
  EXPECT_EQ(choose_coalesce(small), 8U);
}

TEST(Coalesce, NeverReachesPastTheEndOfTheData) {
  CoalesceFacts few = facts();
  few.entries = 1000;
  few.stored_bytes = 1000 * 4096;
  EXPECT_EQ(choose_coalesce(few), 3U);
}

TEST(Coalesce, IsOneWhereAnIterationIsLargeOrABatchIsAllThereIs) {
  CoalesceFacts large = facts();
  large.stored_bytes <<= 12;
  EXPECT_EQ(choose_coalesce(large), 1U);
  CoalesceFacts one = facts();
  one.entries = 10;
  one.stored_bytes = 4096;
  EXPECT_EQ(choose_coalesce(one), 1U);
}

TEST(Coalesce, ManyNodesCoalesceMore) {
  CoalesceFacts sixteen = facts();
  sixteen.node_share = 16;
  EXPECT_EQ(choose_coalesce(sixteen), 1024U);
}

}  // namespace
}  // namespace forebay
