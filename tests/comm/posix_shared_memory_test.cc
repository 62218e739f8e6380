#include "comm/posix_shared_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "forebay/error.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/few_descriptors.hpp"

namespace forebay {
namespace {

std::size_t segments() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().starts_with("forebay") ? 1 : 0;
  }
  return count;
}

TEST(PosixSharedMemory, IsSeenByAllRanksAndLeavesNoName) {
  run_ranks(4, 0, [](const auto& comm) {
    const auto memory = share_posix(*comm, 1 << 16);
    memory->reserve(0, 1 << 16);
    memory->bytes()[static_cast<std::size_t>(comm->rank())] = std::byte{7};
    comm->barrier();
    for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(memory->bytes()[rank], std::byte{7});
    EXPECT_EQ(segments(), 0U) << "a kill at this moment must leave nothing behind";
    comm->barrier();
  });
}

TEST(PosixSharedMemory, FailsOnEveryRankWhereTheDirectoryIsMissing) {
  run_ranks(3, 0, [](const auto& comm) {
    EXPECT_THROW(share_posix(*comm, 4096, "/nowhere/at/all"), Error);
    comm->barrier();
  });
}

TEST(PosixSharedMemory, TheRankThatCannotAttachSaysWhyOnAll) {
  if (!test::kFewDescriptorsDo) GTEST_SKIP() << "the sanitizer needs some";
  const test::FewDescriptors few(1);  // that of rank 0, which creates
  run_ranks(2, 0, [](const auto& comm) {
    const Error error = test::error_from([&] { share_posix(*comm, 4096); });
    EXPECT_THAT(error.what(), testing::HasSubstr("Too many open files"));
    EXPECT_THAT(error.what(), testing::HasSubstr("ulimit -n"));
  });
}

// A full /dev/shm itself is tried in tests/acceptance, on a small one of its own.
TEST(PosixSharedMemory, TellsNeededAndFreeBytesBeyondItsEnd) {
  const auto memory = share_posix(*self_communicator(), 8192);
  EXPECT_NO_THROW(memory->reserve(0, 8192));
  EXPECT_THROW(memory->reserve(std::size_t{1} << 40, 1), Error);
  try {
    memory->reserve(4096, 8192);
    FAIL() << "reserved beyond the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("more bytes are needed"));
    EXPECT_THAT(error.what(), testing::HasSubstr("are free"));
  }
}

TEST(PosixSharedMemory, LargeSegmentsAreAlignedForHugePagesOnEveryRank) {
  constexpr std::size_t kMib = std::size_t{1} << 20;
  for (const std::size_t bytes : {4 * kMib, 10 * kMib + 1, 7 * kMib + 4096}) {
    run_ranks(3, 0, [bytes](const auto& comm) {
      const auto memory = share_posix(*comm, bytes);
      ASSERT_EQ(memory->bytes().size(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->bytes().data()) % (2 * kMib), 0U);
      if (comm->rank() == 0) {
        memory->reserve(0, bytes);
        std::ranges::fill(memory->bytes(), std::byte{9});
      }
      comm->barrier();
      // Another rank's reservation moves pages that are in use: nothing of them may change.
      memory->reserve(0, bytes);
      EXPECT_TRUE(
          std::ranges::all_of(memory->bytes(), [](std::byte b) { return b == std::byte{9}; }));
      comm->barrier();
    });
  }
}

}  // namespace
}  // namespace forebay
