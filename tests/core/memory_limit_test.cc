// Control groups as they are found on real systems, laid out in a folder.
#include "core/memory_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    write("proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 1 kB\nMemAvailable:  524288 kB\n");
  }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  void mount_version2(const std::string& visible_root = "/") {
    write("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n30 23 0:26 " + visible_root +
                                     " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  }

  void mount_version1(const std::string& visible_root = "/") {
    write("proc/self/mountinfo",
          "31 23 0:27 " + visible_root +
              " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "32 23 0:28 / /sys/fs/cgroup/cpu rw shared:1 master:2 - cgroup cgroup rw,cpu\n");
  }

  MemoryLimit limit() { return memory_limit(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(MemoryLimitTest, WithoutGroupsTheMachineIsTheLimit) {
  EXPECT_EQ(limit().limit_bytes, 1024 * kMiB);
  EXPECT_EQ(limit().available_bytes, 512 * kMiB);
  EXPECT_EQ(limit().source, "physical memory");
}

TEST_F(MemoryLimitTest, LimitsOfTheUserCountWithWhatIsUsedOfThem) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  write("proc/self/statm", "1000 300 200 100 0 400 0\n");
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             unlimited            unlimited            bytes     \n"
        "Max address space         314572800            unlimited            bytes     \n");
  EXPECT_EQ(limit().limit_bytes, 300 * kMiB);
  EXPECT_EQ(limit().available_bytes, 300 * kMiB - 1000 * page);
  EXPECT_EQ(limit().source, "ulimit -v");
  write("proc/self/limits", "Max data size             104857600            unlimited   bytes\n");
  EXPECT_EQ(limit().available_bytes, 100 * kMiB - 400 * page);
  EXPECT_EQ(limit().source, "ulimit -d");
}

TEST_F(MemoryLimitTest, TheSmallestLevelOfAVersion2PathRules) {
  mount_version2();
  write("proc/self/cgroup", "0::/jobs/42/step\n");
  write("sys/fs/cgroup/jobs/42/step/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/42/memory.max", "104857600\n");
  write("sys/fs/cgroup/jobs/42/memory.current", "52428800\n");
  write("sys/fs/cgroup/jobs/42/memory.stat", "anon 1\ninactive_file 20971520\nfile 9\n");
  write("sys/fs/cgroup/jobs/memory.max", "209715200\n");
  EXPECT_EQ(limit().limit_bytes, 100 * kMiB);
  EXPECT_EQ(limit().available_bytes, 70 * kMiB) << "page cache that can be dropped is available";
  EXPECT_THAT(limit().source, HasSubstr("/jobs/42"));
}

TEST_F(MemoryLimitTest, Version1IsFoundAmongOtherControllers) {
  mount_version1();
  write("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/job\n0::/unified\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "104857600\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit().limit_bytes, 100 * kMiB);
  EXPECT_EQ(limit().available_bytes, 10 * kMiB);
}

TEST_F(MemoryLimitTest, AContainerSeesItsGroupAsTheMountPoint) {
  mount_version1("/docker/abc");
  write("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "52428800\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
  EXPECT_EQ(limit().limit_bytes, 50 * kMiB);

  write("proc/self/cgroup", "4:memory:/somewhere/else\n");
  EXPECT_EQ(limit().limit_bytes, 100 * kMiB);
}

TEST_F(MemoryLimitTest, UsageAboveTheLimitLeavesNothing) {
  mount_version2();
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(limit().limit_bytes, 1000U);
  EXPECT_EQ(limit().available_bytes, 0U);
}

TEST_F(MemoryLimitTest, GarbageLimitsNothing) {
  write("proc/self/mountinfo", "garbage\n - \n1 2 3 - cgroup2\n\n");
  write("proc/self/cgroup", "::\nx\n0:\n");
  EXPECT_EQ(limit().limit_bytes, 1024 * kMiB);
}

TEST(MemoryLimit, OfThisMachineIsPlausible) {
  const MemoryLimit limit = memory_limit();
  EXPECT_GT(limit.limit_bytes, 64 * kMiB);
  EXPECT_LE(limit.available_bytes, limit.limit_bytes);
  EXPECT_FALSE(limit.source.empty());
}

TEST(MemoryLimit, NothingReadableIsUnlimited) {
  EXPECT_EQ(memory_limit("/nonexistent").limit_bytes, ~0ULL);
}

}  // namespace
}  // namespace forebay
