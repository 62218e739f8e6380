#include "forebay/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.hpp"
#include "core/placement.hpp"
#include "forebay/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using nlohmann::json;

json events_of(const Trace& trace) { return json::parse("[" + trace.events() + "]"); }

std::vector<json> of_phase(const json& events, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

TEST(Trace, SpansAndCountersAreValidEvents) {
  Trace trace(3);
  { const TraceSpan span(&trace, "read", 7); }
  { const TraceSpan span(&trace, "needs \"quoting\""); }
  trace.add_counter("ready", 1.5);
  const json events = events_of(trace);

  const auto spans = of_phase(events, "X");
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].at("name"), "read");
  EXPECT_EQ(spans[0].at("args").at("n"), 7);
  EXPECT_EQ(spans[0].at("pid"), 3);
  EXPECT_EQ(spans[1].at("name"), "needs \"quoting\"");
  EXPECT_EQ(of_phase(events, "C").at(0).at("args").at("value"), 1.5);
  EXPECT_EQ(of_phase(events, "M").at(0).at("args").at("name"), "rank 3");
}

TEST(Trace, TimesAreMicrosecondsOfTheWallClock) {
  Trace trace(0);
  const std::int64_t begin = now_ns();
  trace.add_span("a", begin, begin + 1'234'567);
  trace.add_span("b", begin + 2'000'000, begin + 2'000'001);
  const auto spans = of_phase(events_of(trace), "X");
  EXPECT_DOUBLE_EQ(spans.at(0).at("dur").get<double>(), 1234.567);
  const double ts = spans.at(0).at("ts").get<double>();
  EXPECT_NEAR(spans.at(1).at("ts").get<double>() - ts, 2000.0, 0.5);
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto wall_us = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  EXPECT_NEAR(ts, static_cast<double>(wall_us), 10e6);
}

TEST(Trace, ThreadsAreNamed) {
  Trace trace(0);
  HelperThread("forebay-io", {}, [&](const std::stop_token&) {
    const TraceSpan span(&trace, "read");
  }).stop();
  const json events = events_of(trace);
  const auto names = of_phase(events, "M");
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[1].at("args").at("name"), "forebay-io");
  EXPECT_EQ(names[1].at("tid"), of_phase(events, "X").at(0).at("tid"));
}

TEST(Trace, OffRecordsNothing) { const TraceSpan span(nullptr, "read", 1); }

TEST(Trace, FullTraceCountsWhatItDrops) {
  Trace trace(0, 10);
  for (int i = 0; i < 25; ++i) trace.add_counter("x", i);
  const json events = events_of(trace);
  EXPECT_EQ(of_phase(events, "C").size(), 10U);
  EXPECT_EQ(of_phase(events, "M").at(0).at("args").at("dropped"), 15);
}

TEST(Trace, ManyThreadsRecordAtOnce) {
  Trace trace(0);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) const TraceSpan span(&trace, "work");
      });
    }
  }
  EXPECT_EQ(of_phase(events_of(trace), "X").size(), 2000U);
}

TEST(WriteTrace, JoinsTheRanksToOneValidFile) {
  const test::TemporaryFolder folder;
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    Trace trace(rank);
    trace.add_counter("x", 1);
    ranks.push_back(trace.events());
  }
  write_trace(folder.file("trace.json"), ranks);
  std::ifstream file(folder.file("trace.json"));
  EXPECT_EQ(json::parse(file).at("traceEvents").size(), 9U) << "process, thread, counter";
}

TEST(WriteTrace, NamesTheFileThatCannotBeWritten) {
  try {
    write_trace("/nonexistent/trace.json", {});
    FAIL() << "the folder does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.where().file, "/nonexistent/trace.json");
  }
}

}  // namespace
}  // namespace forebay
