#include "core/huge_pages.hpp"

#include <sys/mman.h>

namespace forebay {
namespace {

// MADV_COLLAPSE of linux/mman.h: newer than the C library of some systems whose kernel has it.
constexpr int kCollapse = 25;

bool advise(std::span<std::byte> memory, int advice) {
  return !memory.empty() && ::madvise(memory.data(), memory.size(), advice) == 0;
}

}  // namespace

bool advise_huge_pages(std::span<std::byte> memory) noexcept {
  return advise(memory, MADV_HUGEPAGE);
}

bool collapse_into_huge_pages(std::span<std::byte> memory) noexcept {
  return advise(memory, kCollapse);
}

}  // namespace forebay
