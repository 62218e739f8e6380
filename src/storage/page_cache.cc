#include "storage/page_cache.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace forebay {
namespace {

// cachestat of linux/mman.h: newer than the headers of some systems whose kernel has it. mincore()
// would need a mapping, and says of files that are not the caller's that all is there.
constexpr long kCachestat = 451;

struct Range {
  std::uint64_t offset;
  std::uint64_t length;
};

struct Pages {
  std::uint64_t cached;
  std::uint64_t dirty;
  std::uint64_t written_back;
  std::uint64_t evicted;
  std::uint64_t lately_evicted;
};

}  // namespace

bool in_page_cache(const File& file, std::uint64_t offset, std::uint64_t length) noexcept {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const int descriptor = file.descriptor();
  if (descriptor < 0 || length == 0) return length == 0;
  const Range range{.offset = offset, .length = length};
  Pages pages{};
  if (::syscall(kCachestat, descriptor, &range, &pages, 0U) != 0) return false;
  return pages.cached >= (offset + length - 1) / page - offset / page + 1;
}

void expect_reads(const File& file, Reads where) noexcept {
  file.read_ahead(where == Reads::forward);
}

}  // namespace forebay
