#include "core/process_usage.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>

namespace forebay {
namespace {

constexpr std::size_t kSize = 32 << 20;

double processor_seconds(const ProcessUsage& usage) {
  return usage.user_seconds + usage.system_seconds;
}

/// Until this thread has had the processor for so long, however many others want it.
void compute_for(double seconds) {
  const ProcessUsage begin = thread_usage();
  while (processor_seconds(thread_usage() - begin) < seconds) {
  }
}

TEST(ProcessUsage, SleepingCountsAsAVoluntarySwitch) {
  const ProcessUsage before = thread_usage();
  for (int i = 0; i < 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GE((thread_usage() - before).voluntary_switches, 5U);
}

TEST(ProcessUsage, ThreadAndProcessAreToldApart) {
  const ProcessUsage thread_before = thread_usage();
  const ProcessUsage process_before = process_usage();
  std::thread([] { compute_for(0.05); }).join();
  const ProcessUsage process = process_usage() - process_before;
  const ProcessUsage thread = thread_usage() - thread_before;
  EXPECT_GE(processor_seconds(process), 0.01);
  EXPECT_LT(processor_seconds(thread), processor_seconds(process));
}

TEST(ProcessUsage, PrivateAndSharedMemoryAreToldApart) {
  const auto map = [](int kind) {
    return ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  };
  const ProcessUsage before = process_usage();
  void* own = map(MAP_PRIVATE);
  ASSERT_NE(own, MAP_FAILED);
  std::memset(own, 1, kSize);
  const ProcessUsage with_private = process_usage();
  EXPECT_GE(with_private.private_bytes, before.private_bytes + kSize / 2);

  void* shared = map(MAP_SHARED);
  ASSERT_NE(shared, MAP_FAILED);
  std::memset(shared, 1, kSize);
  const ProcessUsage with_shared = process_usage();
  EXPECT_GE(with_shared.mapped_bytes, before.mapped_bytes + kSize / 2);
  EXPECT_GE(with_shared.minor_faults, before.minor_faults);
  ::munmap(own, kSize);
  ::munmap(shared, kSize);
  EXPECT_GE(process_usage().peak_resident_bytes, 2 * kSize);
}

TEST(ProcessUsage, DifferenceKeepsLevels) {
  ProcessUsage earlier;
  earlier.major_faults = 3;
  earlier.private_bytes = 100;
  ProcessUsage later;
  later.major_faults = 10;
  later.private_bytes = 50;
  const ProcessUsage spent = later - earlier;
  EXPECT_EQ(spent.major_faults, 7U);
  EXPECT_EQ(spent.private_bytes, 50U);
}

}  // namespace
}  // namespace forebay
