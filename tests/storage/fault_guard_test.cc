// Faults inside mappings: the process survives, the error names the offset, others are unaffected.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <filesystem>
#include <numeric>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/storage.hpp"
#include "storage/fault_guard.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::counting_bytes;
using test::TemporaryFolder;
using test::write_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kPage = 4096;

// Reads every `step`-th byte through a volatile pointer, so that no access is optimized away.
std::uint64_t sum_bytes(std::span<const std::byte> bytes, std::size_t step = 1) {
  std::uint64_t sum = 0;
  const volatile std::byte* data = bytes.data();
  for (std::size_t i = 0; i < bytes.size(); i += step) sum += static_cast<std::uint64_t>(data[i]);
  return sum;
}

std::uint64_t sum_of(std::span<const std::byte> bytes) { return sum_bytes(bytes); }

std::string message_of_check(const File& file) {
  try {
    file.check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.what();
  }
  return "";
}

TEST(FaultGuard, FileCutWhileMappedIsAnErrorAndNotTheEnd) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(16 * kPage);
  write_bytes(folder.file("data"), bytes);
  const auto file = open_file(folder.file("data"), Engine::mmap);
  EXPECT_EQ(sum_bytes(file->map()), sum_of(bytes));
  file->check();

  std::filesystem::resize_file(folder.file("data"), 3 * kPage);
  const auto front = std::span(bytes).first(3 * kPage);
  EXPECT_EQ(sum_bytes(file->map()), sum_of(front)) << "what is gone reads as zeros";
  EXPECT_THAT(message_of_check(*file),
              AllOf(HasSubstr("offset 12288"), HasSubstr(folder.file("data")), HasSubstr("cut")));
}

TEST(FaultGuard, TheLowestFaultingOffsetIsNamed) {
  const TemporaryFolder folder;
  write_bytes(folder.file("data"), counting_bytes(16 * kPage));
  const auto file = open_file(folder.file("data"), Engine::mmap);
  std::filesystem::resize_file(folder.file("data"), 0);
  sum_bytes(file->map().subspan(9 * kPage + 5, 1));
  EXPECT_THAT(message_of_check(*file), HasSubstr("offset 36869"));
  sum_bytes(file->map().subspan(2 * kPage + 7, 1));
  EXPECT_THAT(message_of_check(*file), HasSubstr("offset 8199"));
}

TEST(FaultGuard, OtherMappingsOfTheProcessStayGood) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(4 * kPage);
  write_bytes(folder.file("cut"), bytes);
  write_bytes(folder.file("whole"), bytes);
  const auto cut = open_file(folder.file("cut"), Engine::mmap);
  const auto whole = open_file(folder.file("whole"), Engine::mmap);
  std::filesystem::resize_file(folder.file("cut"), 0);
  EXPECT_EQ(sum_bytes(cut->map()), 0U);
  EXPECT_EQ(sum_bytes(whole->map()), sum_of(bytes));
  EXPECT_NE(message_of_check(*cut), "");
  EXPECT_EQ(message_of_check(*whole), "");
}

TEST(FaultGuard, AFileOpenedAgainIsWellAgain) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(4 * kPage);
  write_bytes(folder.file("data"), bytes);
  {
    const auto file = open_file(folder.file("data"), Engine::mmap);
    std::filesystem::resize_file(folder.file("data"), 0);
    sum_bytes(file->map());
    EXPECT_NE(message_of_check(*file), "");
  }
  write_bytes(folder.file("data"), bytes);
  const auto file = open_file(folder.file("data"), Engine::mmap);
  EXPECT_EQ(sum_bytes(file->map()), sum_of(bytes));
  EXPECT_EQ(message_of_check(*file), "");
}

TEST(FaultGuard, ManyThreadsFaultAtOnce) {
  const TemporaryFolder folder;
  constexpr std::size_t kPages = 256;
  write_bytes(folder.file("data"), counting_bytes(kPages * kPage));
  for (int round = 0; round < 10; ++round) {
    std::filesystem::resize_file(folder.file("data"), kPages * kPage);
    const auto file = open_file(folder.file("data"), Engine::mmap);
    std::filesystem::resize_file(folder.file("data"), kPage);
    {
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&file, t] {
          // Every thread walks its own direction and phase, some towards lower addresses.
          for (std::size_t i = 0; i < kPages; ++i) {
            const std::size_t page = t % 2 == 0 ? i : kPages - 1 - i;
            sum_bytes(file->map().subspan(page * kPage + t, 1));
          }
        });
      }
    }
    EXPECT_NE(message_of_check(*file), "");
  }
}

TEST(FaultGuard, MappingsComeAndGoWhileAnotherFaults) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(8 * kPage);
  write_bytes(folder.file("whole"), bytes);
  write_bytes(folder.file("cut"), bytes);
  const std::jthread others([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto file = open_file(folder.file("whole"), Engine::mmap);
      EXPECT_EQ(sum_bytes(file->map(), kPage), sum_bytes(bytes, kPage));
      EXPECT_EQ(message_of_check(*file), "");
    }
  });
  for (int round = 0; round < 50; ++round) {
    std::filesystem::resize_file(folder.file("cut"), 8 * kPage);
    const auto file = open_file(folder.file("cut"), Engine::mmap);
    std::filesystem::resize_file(folder.file("cut"), 0);
    EXPECT_EQ(sum_bytes(file->map()), 0U);
    EXPECT_NE(message_of_check(*file), "");
  }
}

TEST(FaultGuard, MoreMappingsThanTheTableHoldsIsAnError) {
  const auto bytes = counting_bytes(1);
  std::vector<std::unique_ptr<FaultGuard>> guards;
  try {
    for (std::size_t i = 0; i <= FaultGuard::kCapacity; ++i) {
      guards.push_back(std::make_unique<FaultGuard>(std::span<const std::byte>{}));
    }
    FAIL() << "the table has no end";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("too many mapped files"), HasSubstr("pread")));
  }
  guards.pop_back();
  guards.push_back(std::make_unique<FaultGuard>(std::span<const std::byte>{}));
}

// A child of fork() has the handler and the table of its parent, and its own record of faults.
TEST(FaultGuard, ForkedChildSurvivesAndItsParentIsUnaffected) {
  const TemporaryFolder folder;
  const auto bytes = counting_bytes(4 * kPage);
  write_bytes(folder.file("data"), bytes);
  const auto file = open_file(folder.file("data"), Engine::mmap);
  EXPECT_EXIT(
      {
        std::filesystem::resize_file(folder.file("data"), 0);
        const bool zeros = sum_bytes(file->map()) == 0;
        ::_exit(zeros && !message_of_check(*file).empty() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(message_of_check(*file), "");
}

// The sanitizers turn fatal signals into exits of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOREBAY_DIES(statement) EXPECT_DEATH(statement, "")
#else
#define FOREBAY_DIES(statement) EXPECT_EXIT(statement, ::testing::KilledBySignal(SIGBUS), "")
#endif

TEST(FaultGuardDeathTest, AFaultThatIsNotOursStillEndsTheProcess) {
  const TemporaryFolder folder;
  write_bytes(folder.file("ours"), counting_bytes(kPage));
  write_bytes(folder.file("foreign"), counting_bytes(2 * kPage));
  const auto ours = open_file(folder.file("ours"), Engine::mmap);
  FOREBAY_DIES({
    const int fd = ::open(folder.file("foreign").c_str(), O_RDONLY);
    void* address = ::mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, fd, 0);
    std::filesystem::resize_file(folder.file("foreign"), 0);
    sum_bytes({static_cast<const std::byte*>(address), 2 * kPage});
  });
}

TEST(FaultGuardDeathTest, ASignalSentByAProcessStillEndsTheProcess) {
  const TemporaryFolder folder;
  write_bytes(folder.file("ours"), counting_bytes(kPage));
  const auto ours = open_file(folder.file("ours"), Engine::mmap);
  FOREBAY_DIES(::raise(SIGBUS));
}

}  // namespace
}  // namespace forebay
