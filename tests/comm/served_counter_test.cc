// The counter that works by messages alone, on ranks as threads.
#include <gtest/gtest.h>

#include "comm/messages.hpp"
#include "tests/support/communicator_contract.hpp"

namespace forebay {
namespace {

std::unique_ptr<SharedCounter> served_counter(Communicator& comm) {
  return served_counter(comm.split(0, comm.rank()), std::chrono::seconds(60), "for a test");
}

TEST(ServedCounter, GivesEachNumberOnce) {
  for (const int ranks : {1, 2, 5}) {
    run_ranks(ranks, 0,
              [](const auto& comm) { test::check_counter(*comm, served_counter(*comm)); });
  }
}

TEST(ServedCounter, IsGoneWhenRankZeroHasLeft) {
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, 0, [](const auto& comm) {
      test::check_counter_that_is_gone(*comm, served_counter(*comm));
    });
  }
}

TEST(ServedCounter, AddsAlsoWhatNobodyWaitsFor) {
  run_ranks(2, 0, [](const auto& comm) {
    const auto counter = served_counter(*comm);
    if (comm->rank() == 1) {
      EXPECT_FALSE(counter->fetch_add(5, [] { return true; }).has_value()) << "nobody serves";
    }
    comm->barrier();
    if (comm->rank() == 0) {
      EXPECT_EQ(counter->load({}), 5U);
    }
    comm->barrier();
    if (comm->rank() == 1) {
      const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      const auto give_up = [&] { return std::chrono::steady_clock::now() > late; };
      EXPECT_FALSE(counter->load(give_up).has_value()) << "the answer to the first is not taken";
    }
    comm->barrier();
  });
}

TEST(ServedCounter, DoesNotWaitForEverForAnAnswer) {
  run_ranks(2, 0, [](const auto& comm) {
    const auto counter =
        served_counter(comm->split(0, comm->rank()), std::chrono::milliseconds(30), "");
    if (comm->rank() == 1) {
      EXPECT_THROW(counter->fetch_add(1, {}), Error);
    }
    comm->barrier();
  });
}

}  // namespace
}  // namespace forebay
