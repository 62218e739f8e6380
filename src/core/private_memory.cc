#include "core/private_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <new>

#include "core/limits.hpp"
#include "core/memory_limit.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::align_val_t kAlignment{4096};
/// From the system on, but under a sanitizer, which watches over the heap alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kOwnMapping = UINT64_MAX;
#elif defined(__has_feature)
constexpr std::uint64_t kOwnMapping =
    __has_feature(address_sanitizer) ? UINT64_MAX : std::uint64_t{512} << 10;
#else
constexpr std::uint64_t kOwnMapping = std::uint64_t{512} << 10;
#endif

}  // namespace

MemoryPiece take_memory(std::uint64_t bytes) {
  if (bytes < kOwnMapping) {
    void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
    return {static_cast<std::byte*>(memory), {.bytes = bytes}};
  }
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory), {.bytes = bytes}};
}

void PieceOwner::operator()(std::byte* memory) const {
  if (bytes < kOwnMapping) {
    ::operator delete(memory, kAlignment);
  } else {
    ::munmap(memory, bytes);
  }
}

void PrivateMemory::grow(std::uint64_t bytes) {
  // Asked for beforehand: the system promises more than there is.
  constexpr std::uint64_t kLarge = std::uint64_t{16} << 20;
  memory_.reset();
  size_ = 0;
  if (bytes < kLarge || bytes <= memory_limit().available_bytes) memory_ = take_memory(bytes);
  if (memory_ == nullptr) {
    throw Error(ErrorKind::usage,
                fmt::format("there is no memory for {} bytes of samples: {}", bytes, memory_left()),
                "read fewer at a time, or check files that claim as much");
  }
  size_ = bytes;
}

}  // namespace forebay
