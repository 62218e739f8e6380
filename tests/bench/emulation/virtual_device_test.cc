#include "bench/command/emulation/emulated_training.hpp"

#include <gtest/gtest.h>

namespace forebay::emulation {
namespace {

using std::chrono::nanoseconds;

TEST(VirtualDevice, KernelsFollowEachOther) {
  VirtualDevice device(10);
  device.begin(100);
  EXPECT_EQ(device.dispatch(100, nanoseconds(50)), 150);
  EXPECT_EQ(device.dispatch(110, nanoseconds(50)), 200);
  EXPECT_EQ(device.end(), 200);
  EXPECT_EQ(device.idle().count(), 0);
}

TEST(VirtualDevice, WhatComesTooLateMakesItIdle) {
  VirtualDevice device(10);
  device.begin(0);
  device.dispatch(0, nanoseconds(50));
  EXPECT_EQ(device.dispatch(70, nanoseconds(10)), 80);
  EXPECT_EQ(device.idle().count(), 20);
  device.begin(500);
  EXPECT_EQ(device.dispatch(510, nanoseconds(1)), 511);
  EXPECT_EQ(device.idle().count(), 10);
}

TEST(VirtualDevice, TakesNoMoreThanItsQueueHolds) {
  VirtualDevice device(2);
  device.begin(0);
  EXPECT_FALSE(device.full(0));
  device.dispatch(0, nanoseconds(10));
  device.dispatch(0, nanoseconds(10));
  EXPECT_TRUE(device.full(0));
  EXPECT_EQ(device.first_end(), 10);
  EXPECT_TRUE(device.full(9));
  EXPECT_FALSE(device.full(10));
}

}  // namespace
}  // namespace forebay::emulation
