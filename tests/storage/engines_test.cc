// What every engine must do alike, and the messages for files that cannot be opened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <limits>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::counting_bytes;
using test::error_from;
using test::TemporaryFolder;
using test::write_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

class EngineTest : public ::testing::TestWithParam<Engine> {
 protected:
  std::shared_ptr<const File> open(const std::string& path) { return open_file(path, GetParam()); }

  TemporaryFolder folder_;
};

std::string engine_name(const ::testing::TestParamInfo<Engine>& engine) {
  constexpr std::array kNames{"mmap", "pread", "uring"};
  return kNames[static_cast<std::size_t>(engine.param)];
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest,
                         ::testing::Values(Engine::mmap, Engine::pread, Engine::uring),
                         engine_name);

TEST_P(EngineTest, ReadsAnyRangeExactly) {
  const auto bytes = counting_bytes(10'000);
  write_bytes(folder_.file("data"), bytes);
  const auto file = open(folder_.file("data"));
  EXPECT_EQ(file->path(), folder_.file("data"));
  EXPECT_EQ(file->size(), bytes.size());
  for (const std::size_t offset : {0, 1, 4095, 4096, 9'999, 10'000}) {
    for (const std::size_t count : {0, 1, 2, 4097}) {
      if (offset + count > bytes.size()) continue;
      std::vector<std::byte> out(count);
      file->read(offset, out);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + static_cast<long>(offset)));
    }
  }
}

TEST_P(EngineTest, CountsRequestsAndBytes) {
  write_bytes(folder_.file("data"), counting_bytes(8192));
  const auto file = open(folder_.file("data"));
  std::vector<std::byte> out(3000);
  file->read(0, out);
  file->read(5000, out);
  EXPECT_EQ(file->counters().requests, 2U);
  EXPECT_EQ(file->counters().bytes, 6000U);
}

TEST_P(EngineTest, ReadPastTheEndNamesOffsetAndEnd) {
  write_bytes(folder_.file("data"), counting_bytes(100));
  const auto file = open(folder_.file("data"));
  std::vector<std::byte> out(50);
  const Error error = error_from([&] { file->read(60, out); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.where().offset, 60U);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("ends at 100"), HasSubstr(folder_.file("data"))));
}

TEST_P(EngineTest, OffsetsNearTheLimitOfIntegersDoNotWrap) {
  write_bytes(folder_.file("data"), counting_bytes(100));
  const auto file = open(folder_.file("data"));
  std::vector<std::byte> out(50);
  const auto largest = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t offset : {largest, largest - 49, largest / 2, largest / 2 - 10}) {
    EXPECT_EQ(error_from([&] { file->read(offset, out); }).kind(), ErrorKind::io);
  }
}

TEST_P(EngineTest, EmptyFileOpensAndMapsToNothing) {
  write_bytes(folder_.file("empty"), {});
  const auto file = open(folder_.file("empty"));
  EXPECT_EQ(file->size(), 0U);
  EXPECT_TRUE(file->map().empty());
  file->check();
}

TEST_P(EngineTest, SizeAndFingerprintFollowAChange) {
  write_bytes(folder_.file("data"), counting_bytes(100));
  const auto file = open(folder_.file("data"));
  const FileFingerprint before = file->fingerprint();
  EXPECT_EQ(before, open(folder_.file("data"))->fingerprint());
  std::filesystem::resize_file(folder_.file("data"), 200);
  EXPECT_EQ(file->size(), 200U);
  EXPECT_NE(file->fingerprint(), before);
}

TEST_P(EngineTest, ManyThreadsReadAtOnce) {
  const auto bytes = counting_bytes(100'000);
  write_bytes(folder_.file("data"), bytes);
  const auto file = open(folder_.file("data"));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> out(1000);
        for (std::size_t offset = static_cast<std::size_t>(t); offset < 99'000; offset += 997) {
          file->read(offset, out);
          if (out[500] != bytes[offset + 500]) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(EngineTest, MissingFileIsNotFound) {
  const Error error = error_from([&] { open(folder_.file("absent")); });
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("absent"), HasSubstr("check the path")));
  EXPECT_EQ(error_from([&] { open(""); }).kind(), ErrorKind::not_found);
}

TEST_P(EngineTest, FolderIsRefusedWithAdvice) {
  const Error error = error_from([&] { open(folder_.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("directory"), HasSubstr("name a file inside it")));
}

TEST_P(EngineTest, NamedPipeIsRefusedWithoutBlocking) {
  ASSERT_EQ(::mkfifo(folder_.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_from([&] { open(folder_.file("pipe")); }).kind(), ErrorKind::usage);
}

// Permission does not bind the superuser, so an unprivileged child does the opening.
TEST_P(EngineTest, PermissionDeniedIsReadable) {
  write_bytes(folder_.file("secret"), counting_bytes(10));
  ASSERT_EQ(::chmod(folder_.file("secret").c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const Error error = error_from([&] { open(folder_.file("secret")); });
    const std::string text = error.what();
    const bool right = error.kind() == ErrorKind::io &&
                       text.find("permission denied") != std::string::npos &&
                       text.find("give this user read permission") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(PreadEngine, DoesNotMap) {
  const TemporaryFolder folder;
  write_bytes(folder.file("data"), counting_bytes(100));
  EXPECT_TRUE(open_file(folder.file("data"), Engine::pread)->map().empty());
}

TEST(MmapEngine, MapsTheSizeAtOpen) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(5000);
  write_bytes(folder.file("data"), bytes);
  const auto file = open_file(folder.file("data"), Engine::mmap);
  std::filesystem::resize_file(folder.file("data"), 50'000);
  ASSERT_EQ(file->map().size(), bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), file->map().begin()));
  EXPECT_EQ(file->counters().requests, 0U);
}

TEST(MmapEngine, RefusalNamesCallFileSystemAndTheOtherEngine) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";  // sysfs cannot be mapped
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " does not exist here";
  const Error error = error_from([&] { open_file(path, Engine::mmap); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("mmap"), HasSubstr("sysfs"), HasSubstr("--engine pread")));
}

TEST(MemoryFile, BehavesAsAFile) {
  const auto bytes = counting_bytes(100);
  const auto file = memory_file("memory", bytes);
  std::vector<std::byte> out(40);
  file->read(60, out);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin() + 60));
  EXPECT_EQ(file->map().size(), 100U);
  EXPECT_EQ(error_from([&] { file->read(61, out); }).kind(), ErrorKind::io);
  EXPECT_EQ(error_from([&] { file->read(~0ULL, out); }).kind(), ErrorKind::io);
  EXPECT_EQ(file->fingerprint(), memory_file("other", bytes)->fingerprint());
  EXPECT_NE(file->fingerprint(), memory_file("memory", counting_bytes(99))->fingerprint());
  file->check();
}

}  // namespace
}  // namespace forebay
