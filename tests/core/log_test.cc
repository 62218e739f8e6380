#include "core/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { set_log_hook({}); }

  void record(LogLevel level) {
    set_log_hook([this](LogLevel, std::string_view text) { messages_.emplace_back(text); }, level);
  }

  std::vector<std::string> messages_;
};

TEST_F(LogTest, WithoutAHookNothingIsEnabled) {
  set_log_hook({});
  EXPECT_FALSE(log_enabled(LogLevel::error));
  log(LogLevel::error, "goes {}", "nowhere");
}

TEST_F(LogTest, MessagesBelowTheLevelAreDropped) {
  record(LogLevel::warning);
  log(LogLevel::info, "info");
  log(LogLevel::warning, "warning {}", 1);
  log(LogLevel::error, "error");
  EXPECT_THAT(messages_, ElementsAre("warning 1", "error"));
}

TEST_F(LogTest, ARemovedHookHearsNothing) {
  record(LogLevel::debug);
  set_log_hook({});
  log(LogLevel::error, "late");
  EXPECT_TRUE(messages_.empty());
}

TEST_F(LogTest, AHookMayLogAndReplaceItself) {
  int calls = 0;
  set_log_hook([&](LogLevel, std::string_view) {
    if (++calls == 1) log(LogLevel::info, "from the hook");
    set_log_hook({});
  });
  log(LogLevel::info, "first");
  EXPECT_EQ(calls, 2);
}

TEST_F(LogTest, ThreadsLogWhileTheHookChanges) {
  std::atomic<int> heard = 0;
  const auto hook = [&](LogLevel, std::string_view) { ++heard; };
  set_log_hook(hook);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 1000; ++i) log(LogLevel::info, "{}", i);
      });
    }
    for (int i = 0; i < 100; ++i) set_log_hook(hook);
  }
  EXPECT_EQ(heard, 3000);
}

TEST_F(LogTest, TheHookForStderrWritesLevelAndText) {
  set_log_hook(stderr_log_hook());
  ::testing::internal::CaptureStderr();
  log(LogLevel::warning, "low {}", "memory");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("warning: low memory"));
}

}  // namespace
}  // namespace forebay
