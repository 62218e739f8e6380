// What the two-sided transport waits and packs with.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/messages.hpp"
#include "comm/waiting.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;

TEST(BriskWaiting, EndsAtItsLimitAndSaysWhatForAndAsksTheInterruptMeanwhile) {
  int asked = 0;
  const WaitPolicy policy{.timeout = 20ms, .interrupt = [&] { ++asked; }};
  const Error error = test::error_from([&] {
    BriskWaiting waiting(policy, "samples of rank 3");
    for (;;) waiting.step();
  });
  EXPECT_EQ(error.kind(), ErrorKind::communication);
  EXPECT_NE(std::string(error.what()).find("samples of rank 3"), std::string::npos) << error.what();
  EXPECT_GT(asked, 0);
}

TEST(SpareBuffers, GiveLongEnoughMemoryAndTheSameAgain) {
  SpareBuffers buffers;
  SpareBuffers::Buffer first = buffers.take(1000);
  ASSERT_GE(first.size(), 1000U);
  std::ranges::fill(first, std::byte{7});
  const std::byte* const place = first.data();
  buffers.give_back(std::move(first));

  SpareBuffers::Buffer again = buffers.take(10);
  EXPECT_EQ(again.data(), place);
  EXPECT_NE(buffers.take(10).data(), place) << "what is out is nobody else's";
  buffers.give_back(std::move(again));
  EXPECT_GE(buffers.take(5000).size(), 5000U);
}

TEST(SpareBuffers, OfNothingAreNotKept) {
  SpareBuffers buffers;
  buffers.give_back({});
  EXPECT_GE(buffers.take(1).size(), 1U);
}

}  // namespace
}  // namespace forebay
