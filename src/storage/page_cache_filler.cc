#include "storage/page_cache_filler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "forebay/error.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

// The system takes no more at once than the device's largest request or its read-ahead, whichever
// is larger: usually more than this.
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
// Keeps a local device busy, and pages from being thrown out before they are used.
constexpr std::uint64_t kAheadBytes = std::uint64_t{64} << 20;
// MADV_POPULATE_READ of linux/mman.h, since Linux 5.14: newer than the headers of some systems.
constexpr int kPopulateRead = 22;

/// The whole pages around `bytes`.
std::span<std::byte> pages_around(std::span<std::byte> bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t before = begin % page;
  const std::uintptr_t end = (begin + bytes.size() + page - 1) / page * page;
  return {bytes.data() - before, end - (begin - before)};
}

}  // namespace

PageCacheFiller::PageCacheFiller(std::shared_ptr<const MmapFile> file, std::stop_token stop)
    : file_(std::move(file)), stop_(std::move(stop)) {}

void PageCacheFiller::start(std::span<const ReadRequest> requests) {
  require_possible(requests, *file_);
  requests_ = requests;
  pieces_ = RequestSplitter(requests, kPiece);
  asked_ = 0;
  ask_ahead(0);
}

void PageCacheFiller::finish(const Done& done) {
  const auto requests = std::exchange(requests_, {});
  std::uint64_t brought = 0, end = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // In pieces here, too: a request may be as large as all that a window reads.
    for (RequestSplitter pieces(requests.subspan(i, 1), kPiece); !pieces.empty();) {
      if (stop_.stop_requested()) throw stopped_error(file_->path());
      ask_ahead(brought);
      const ReadPiece piece = pieces.next();
      bring(piece);
      brought += piece.into.size();
    }
    end = std::max(end, requests[i].offset + requests[i].into.size());
    done(i);
  }
  // A cut inside a page does not fault: the rest of that page reads as zeros.
  const std::uint64_t size = file_->size();
  if (end > size) throw end_of_file_error(file_->path(), size, end - size, size);
}

/// `brought`: bytes that need not be waited for any more.
void PageCacheFiller::ask_ahead(std::uint64_t brought) {
  while (!pieces_.empty() && asked_ < brought + kAheadBytes) {
    const ReadPiece piece = pieces_.next();
    // No more than advice: what it does not bring comes when it is waited for.
    static_cast<void>(::posix_fadvise(file_->descriptor(), static_cast<off_t>(piece.offset),
                                      static_cast<off_t>(piece.into.size()), POSIX_FADV_WILLNEED));
    asked_ += piece.into.size();
    ++counters_.requests;
    counters_.bytes += piece.into.size();
  }
}

void PageCacheFiller::bring(const ReadPiece& piece) const {
  const auto pages = pages_around(piece.into);
  if (::madvise(pages.data(), pages.size(), kPopulateRead) == 0) return;
  if (errno == EINVAL) return;  // an older system: pages come when they are used
  // A read says what is wrong, or that it was nothing lasting.
  std::vector<std::byte> scratch(piece.into.size());
  file_->read(piece.offset, scratch);
}

std::string PageCacheFiller::describe() const {
  return fmt::format("into the page cache, {} ahead, used there", size_text(kAheadBytes));
}

}  // namespace forebay
