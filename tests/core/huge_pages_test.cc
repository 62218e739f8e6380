// Asking for huge pages never hurts: whatever the answer, the bytes stay what they were.
#include "core/memory_limit.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

namespace forebay {
namespace {

TEST(HugePages, ContentStaysWhateverTheSystemAnswers) {
  constexpr std::size_t kBytes = 3 * kHugePage;
  void* address =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(address, MAP_FAILED);
  const std::span memory(static_cast<std::byte*>(address), kBytes);
  advise_huge_pages(memory);
  std::ranges::fill(memory, std::byte{5});
  collapse_into_huge_pages(memory);
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{5}; }));
  ::munmap(address, kBytes);
}

TEST(HugePages, RefusalIsAnAnswerAndNoError) {
  EXPECT_FALSE(advise_huge_pages({}));
  EXPECT_FALSE(collapse_into_huge_pages({}));
  // Not at the start of a page.
  alignas(4096) std::byte bytes[8192]{};
  EXPECT_FALSE(collapse_into_huge_pages(std::span(bytes).subspan(1, 100)));
}

}  // namespace
}  // namespace forebay
