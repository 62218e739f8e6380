#include "storage/pread_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "core/mix.hpp"
#include "storage/file_error.hpp"
#include "storage/read_fully.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMaxOffset = std::numeric_limits<off_t>::max();

struct stat status_of(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw open_error(path, errno);
  return status;
}

// O_NONBLOCK keeps a named pipe from blocking the open for ever. It changes nothing for reads of
// files, except that io_uring may answer EAGAIN where it should wait: so it is taken back.
int open_read_only(const std::string& path) {
  while (true) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || errno != EINTR) return fd;
  }
}

/// A block device reports no st_size.
std::uint64_t size_of(int fd, const struct stat& status, const std::string& path) {
  if (!S_ISBLK(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  const off_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) throw open_error(path, errno);
  return static_cast<std::uint64_t>(end);
}

void require_file(mode_t mode, const std::string& path) {
  if (S_ISDIR(mode)) throw open_error(path, EISDIR);
  if (S_ISREG(mode) || S_ISBLK(mode)) return;
  throw Error(ErrorKind::usage, "this is a pipe or a character device, not a file",
              "name a regular file or a block device", Where{.file = path});
}

}  // namespace

FileDescriptor::FileDescriptor(const std::string& path) : fd_(open_read_only(path)) {
  if (fd_ < 0) throw open_error(path, errno);
  try {
    require_file(status_of(fd_, path).st_mode, path);
    if (::fcntl(fd_, F_SETFL, 0) != 0) throw open_error(path, errno);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

FileDescriptor::~FileDescriptor() { ::close(fd_); }

namespace {

/// 0 where the kernel or the file system does not tell.
std::int64_t born_ns(int fd) {
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0) return 0;
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  return std::int64_t{status.stx_btime.tv_sec} * 1'000'000'000 + status.stx_btime.tv_nsec;
}

}  // namespace

PreadFile::PreadFile(std::string path)
    : path_(std::move(path)), descriptor_(path_), born_ns_(born_ns(descriptor())) {
  read_ahead(false);
}

// No more than advice: where it is refused, reading is as it was.
void PreadFile::read_ahead(bool forward) const noexcept {
  const auto advise = [this](int advice) {
    static_cast<void>(::posix_fadvise(descriptor(), 0, 0, advice));
  };
  if (forward) return advise(POSIX_FADV_NORMAL);
  // The kernel cuts what is read into requests of its read-ahead, on NFS often 128 KiB.
  // "Sequential" doubles that for this descriptor, and is not taken back by "random", which takes
  // the reading ahead.
  advise(POSIX_FADV_SEQUENTIAL);
  advise(POSIX_FADV_RANDOM);
}

/// Asked for when it is wanted: a folder may have a million files, of one request each.
Stripes PreadFile::stripes(std::uint64_t offset) const {
  std::call_once(asked_for_stripes_, [this] { striped_ = striped_ranges(descriptor()); });
  const auto range = std::ranges::find_if(striped_, [offset](const StripedRange& one) {
    return one.begin <= offset && offset < one.end;
  });
  return range == striped_.end() ? Stripes() : range->stripes;
}

bool PreadFile::is_local() const { return is_local_file_system(file_system_name(descriptor())); }

std::uint64_t PreadFile::size() const {
  return size_of(descriptor(), status_of(descriptor(), path_), path_);
}

void PreadFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.size() > kMaxOffset || offset > kMaxOffset - out.size()) {
    throw end_of_file_error(path_, offset, out.size(), size());
  }
  const auto pread_call = [this](std::byte* bytes, std::size_t count, std::uint64_t at) {
    return ::pread(descriptor(), bytes, count, static_cast<off_t>(at));
  };
  const ReadResult result = read_fully(offset, out, pread_call);
  requests_.fetch_add(result.requests, std::memory_order_relaxed);
  bytes_.fetch_add(result.filled, std::memory_order_relaxed);
  if (result.error != 0) throw read_error(path_, offset + result.filled, result.error);
  if (result.filled < out.size()) {
    const std::uint64_t end = std::min(size(), offset + result.filled);  // it may end before
    throw end_of_file_error(path_, offset, out.size(), end);
  }
}

FileFingerprint PreadFile::fingerprint() const {
  const struct stat status = status_of(descriptor(), path_);
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.size = size_of(descriptor(), status, path_),
          .device = status.st_dev,
          .inode = status.st_ino,
          .born_ns = born_ns_,
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim),
          .rights = mix_key({status.st_mode, status.st_uid, status.st_gid, status.st_nlink})};
}

FileCounters PreadFile::counters() const {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed)};
}

}  // namespace forebay
