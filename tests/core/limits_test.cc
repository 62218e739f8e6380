// What runs short is told with what was being done, what there is, and what to lower.
#include "core/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <new>
#include <system_error>
#include <vector>

#include "core/placement.hpp"
#include "core/private_memory.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/scale.hpp"

namespace forebay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr bool kMayLimitMemory = !test::kSanitized;  // a sanitizer has more than any limit

/// In a child process: `bytes` more of address space than it has now.
void leave(std::uint64_t bytes) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit limit {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * 4096 + bytes;
  setrlimit(RLIMIT_AS, &limit);
}

/// Ends the process with 0 where `call` throws an io error that `says`.
template <typename Call>
[[noreturn]] void end_with_error(Call&& call, const std::string& says) {
  try {
    call();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(std::string(error.what()).find(says) == std::string::npos ? 2 : 0);
  }
  std::_Exit(3);
}

TEST(Limits, FailuresOfTheLanguageBecomeErrorsThatSayWhatToLower) {
  const Error memory = as_error(std::bad_alloc(), "decoding a batch", "--batch");
  EXPECT_EQ(memory.kind(), ErrorKind::io);
  EXPECT_THAT(memory.what(), AllOf(HasSubstr("no memory for decoding a batch"),
                                   HasSubstr("bytes are left ("), HasSubstr("lower --batch")));
  const std::system_error files(EMFILE, std::generic_category());
  EXPECT_THAT(as_error(files, "opening this").what(),
              AllOf(HasSubstr("opening this: "), HasSubstr("ulimit -n")));
  const Error error(ErrorKind::corrupt, "a", "b", {.sample = 3});
  EXPECT_EQ(as_error(error, "reading").kind(), ErrorKind::corrupt);
  EXPECT_STREQ(as_error(std::runtime_error("its words"), "reading").what(), "its words");
}

TEST(Limits, ErrorsOfTheSystemNameTheLimit) {
  EXPECT_THAT(remedy_for(EMFILE, "x"), HasSubstr("'ulimit -n', now "));
  EXPECT_THAT(remedy_for(EFBIG, "x"), HasSubstr("'ulimit -f', now "));
  EXPECT_THAT(remedy_for(ENOSPC, "x"), HasSubstr("make room"));
  EXPECT_THAT(remedy_for(ENOMEM, "x"), HasSubstr("bytes are left"));
  EXPECT_EQ(remedy_for(EIO, "x"), "x");
}

TEST(Limits, WhatNobodyHasIsRefusedBeforeItIsTaken) {
  EXPECT_NO_THROW(require_memory(1, "a test", "--batch"));
  EXPECT_THAT(test::error_from([] { require_memory(UINT64_MAX / 2, "a test", "--batch"); }).what(),
              AllOf(HasSubstr("9223372036854775807 bytes of memory are needed for a test"),
                    HasSubstr("lower --batch")));
  PrivateMemory memory;
  EXPECT_THAT(test::error_from([&] { memory.get(std::uint64_t{1} << 50); }).what(),
              AllOf(HasSubstr("1125899906842624 bytes of samples"), HasSubstr("bytes are left")));
}

TEST(Limits, MemoryIsAskedForWithinTheLimitOfTheUser) {
  if (!kMayLimitMemory) GTEST_SKIP() << "a sanitizer has its own";
  EXPECT_EXIT(
      {
        leave(64 << 20);
        require_memory(8 << 20, "little", "--batch");
        end_with_error([] { require_memory(96 << 20, "much", "--batch"); }, "(ulimit -v)");
      },
      testing::ExitedWithCode(0), "100663296 bytes of memory are needed for much");
}

TEST(Limits, AThreadThatDoesNotStartIsAnErrorWithItsName) {
  if (!kMayLimitMemory) GTEST_SKIP() << "a sanitizer has its own";
  EXPECT_EXIT(
      {
        leave(1 << 20);
        std::vector<HelperThread> threads;
        end_with_error(
            [&] {
              for (int i = 0; i < 1000; ++i) {
                threads.emplace_back("fb-test", Placement{}, [](const std::stop_token& stop) {
                  while (!stop.stop_requested()) std::this_thread::yield();
                });
              }
            },
            "ulimit -u");
      },
      testing::ExitedWithCode(0), "thread 'fb-test' cannot be started");
}

}  // namespace
}  // namespace forebay
