#include "storage/page_cache.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "storage/joined_file.hpp"
#include "storage/pread_file.hpp"

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
  const auto* on_disk = dynamic_cast<const PreadFile*>(&file);
  if (on_disk == nullptr || length == 0) return length == 0;
  const Range range{.offset = offset, .length = length};
  Pages pages{};
  if (::syscall(kCachestat, on_disk->fd(), &range, &pages, 0U) != 0) return false;
  return pages.cached >= (offset + length - 1) / page - offset / page + 1;
}

void expect_reads(const File& file, Reads where) noexcept {
  if (const auto* joined = dynamic_cast<const JoinedFile*>(&file)) {
    for (const auto& part : joined->parts()) expect_reads(*part, where);
  } else if (const auto* on_disk = dynamic_cast<const PreadFile*>(&file)) {
    on_disk->read_ahead(where == Reads::forward);
  }
}

}  // namespace forebay
