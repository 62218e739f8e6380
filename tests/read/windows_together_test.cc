#include "read/windows_together.hpp"

#include <gtest/gtest.h>

namespace forebay {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// 4 KiB a sample, a node takes 64 of 256 samples: 256 KiB a window.
WindowFacts facts() {
  return {.entries = 1 << 20,
          .sample_bytes = 4096,
          .window = 256,
          .node_share = 64,
          .buffer_bytes = 4 * kGiB};
}

TEST(WindowsTogether, AreAsManyAsReadsNeed) { EXPECT_EQ(windows_together(facts()), 256U); }

TEST(WindowsTogether, LeaveRoomForSamplesThatAreLargerThanTheMean) {
  WindowFacts small = facts();
  small.buffer_bytes = 128 << 20;
  EXPECT_EQ(windows_together(small), 8U);
  small.buffer_bytes = 1 << 20;
  EXPECT_EQ(windows_together(small), 1U);
}

TEST(WindowsTogether, NeverReachPastTheEndOfTheData) {
  WindowFacts few = facts();
  few.entries = 1000;
  EXPECT_EQ(windows_together(few), 3U);
}

TEST(WindowsTogether, AreOneWhereThatIsLargeOrAllThereIs) {
  WindowFacts large = facts();
  large.sample_bytes *= 4096;
  EXPECT_EQ(windows_together(large), 1U);
  WindowFacts one = facts();
  one.entries = 10;
  EXPECT_EQ(windows_together(one), 1U);
}

TEST(WindowsTogether, LeaveARunEnoughTurns) {
  WindowFacts turns = facts();
  turns.most = 3;
  EXPECT_EQ(windows_together(turns), 3U);
  turns.most = 0;
  EXPECT_EQ(windows_together(turns), 1U) << "a short run";
}

TEST(WindowsTogether, OfManyNodesAreMore) {
  WindowFacts sixteen = facts();
  sixteen.node_share = 16;
  EXPECT_EQ(windows_together(sixteen), 1024U);
}

}  // namespace
}  // namespace forebay
