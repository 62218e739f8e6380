#include "pfs/meter.hpp"

#include <gtest/gtest.h>

#include "core/clock.hpp"

namespace forebay::pfs {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(PfsMeter, CountsReadsByClientAndServer) {
  Model model({.servers = 2, .stripe = 4096});
  Meter meter({"a", "b"});
  meter.count_metadata(0);
  for (unsigned i = 0; i < 3; ++i) {
    meter.count_read(1, model.submit({.file = 0, .offset = i * 8192U, .length = 8192}, 1), 1);
    meter.count_answer(1, i == 2, kSecond, kSecond + 1'000'000);
  }
  const auto json = meter.to_json(model.tallies());
  const auto& reader = json["clients"][1];
  EXPECT_EQ(reader["mount"], "b");
  EXPECT_EQ(reader["requests"], 3);
  EXPECT_EQ(reader["bytes"], 3 * 8192);
  EXPECT_EQ(reader["seeks"], 2);
  EXPECT_EQ(reader["failed"], 1);
  EXPECT_EQ(reader["sizes"], nlohmann::json({{"8192", 3}}));
  EXPECT_EQ(json["clients"][0]["metadata"], 1);
  EXPECT_EQ(json["clients"][0]["requests"], 0);
  EXPECT_EQ(json["servers"][0]["sizes"], nlohmann::json({{"4096", 3}}));
  EXPECT_NEAR(json["late_seconds"]["mean"].get<double>(), 0.001, 1e-9);
  EXPECT_NEAR(json["active_seconds"].get<double>(), 1.001, 1e-6);
}

TEST(PfsMeter, ADaemonThatTakesTheProcessorsMakesTheRunVoid) {
  Meter meter({"a"});
  const double until = now_seconds() + 0.05;
  while (now_seconds() < until) {
  }
  // All that time of one core fell into a run of a nanosecond.
  meter.count_read(0, {1, {.requests = 1, .bytes = 1}}, 1);
  meter.count_answer(0, false, 2, 2);
  EXPECT_TRUE(meter.to_json({})["void"].get<bool>());
  meter.reset();
  meter.count_read(0, {1, {.requests = 1, .bytes = 1}}, 1);
  meter.count_answer(0, false, 100 * kSecond, 100 * kSecond);
  EXPECT_FALSE(meter.to_json({})["void"].get<bool>());
}

TEST(PfsMeter, ResetForgetsAllButTheNames) {
  Meter meter({"a"});
  meter.count_metadata(0);
  meter.count_read(0, {1, {.requests = 1, .bytes = 10}}, 1);
  meter.count_answer(0, true, 1, 2);
  meter.reset();
  const auto client = meter.to_json({})["clients"][0];
  EXPECT_EQ(client["mount"], "a");
  EXPECT_EQ(client["requests"], 0);
  EXPECT_EQ(client["metadata"], 0);
  EXPECT_EQ(client["failed"], 0);
  EXPECT_TRUE(client["sizes"].empty());
}

}  // namespace
}  // namespace forebay::pfs
