#include "core/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>

#include "forebay/error.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string current_thread_name() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return name;
}

TEST(Placement, TextFormReadsBack) {
  EXPECT_EQ(Placement::parse("shared"), Placement{});
  EXPECT_THAT(Placement::parse("cores:5,0,2-3,2").cores, ElementsAre(0, 2, 3, 5));
  for (const char* text : {"shared", "cores:0", "cores:1,2,7"}) {
    EXPECT_EQ(Placement::parse(text).to_text(), text);
  }
}

TEST(Placement, RefusesOtherText) {
  for (const char* text : {"", "cores", "cores:", "cores:a", "cores:3-1", "cores:1,", "cores:-1",
                           "cores:99999999", "cpu:1"}) {
    try {
      Placement::parse(text);
      ADD_FAILURE() << "'" << text << "' was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr("placement"));
    }
  }
}

TEST(Placement, AvailableCoresAreThoseOfTheProcess) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  const std::vector<int> cores = available_cores();
  EXPECT_EQ(static_cast<int>(cores.size()), CPU_COUNT(&set));
  for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &set));
}

TEST(HelperThread, RunsWithItsNameOnItsCore) {
  const int core = available_cores().back();
  std::string name;
  cpu_set_t set;
  CPU_ZERO(&set);
  HelperThread thread("forebay-with-a-long-name", Placement{{core}}, [&](const std::stop_token&) {
    name = current_thread_name();
    ::sched_getaffinity(0, sizeof(set), &set);
  });
  thread.stop();
  EXPECT_EQ(name, "forebay-with-a-");
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(core, &set));
}

TEST(HelperThread, APlacementThatIsNotPossibleIsTheCallersError) {
  std::atomic<bool> ran = false;
  try {
    const HelperThread thread("x", Placement{{60'000}},
                              [&](const std::stop_token&) { ran = true; });
    FAIL() << "core 60000 does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("core 60000"));
  }
  EXPECT_FALSE(ran);
}

TEST(HelperThread, DestructionStopsAndJoins) {
  std::atomic<bool> ended = false;
  {
    const HelperThread thread("x", {}, [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ended = true;
    });
    EXPECT_TRUE(thread.running());
  }
  EXPECT_TRUE(ended);
}

TEST(HelperThread, MovesAndStopsTwice) {
  HelperThread thread;
  EXPECT_FALSE(thread.running());
  thread.stop();
  thread = HelperThread("x", {}, [](const std::stop_token&) {});
  HelperThread other = std::move(thread);
  other.request_stop();
  other.stop();
  other.stop();
  EXPECT_FALSE(other.running());
}

}  // namespace
}  // namespace forebay
