#include "comm/posix_shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/values.hpp"
#include "core/limits.hpp"
#include "core/memory_limit.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

/// Where the others find the creator's file. Crosses ranks as plain bytes.
struct Ticket {
  std::int64_t pid = 0;
  std::int32_t descriptor = -1;
  std::uint32_t named = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::array<char, 96> path{};
};

[[noreturn]] void fail(const std::string& call, const std::string& directory, int error) {
  throw Error(
      ErrorKind::io,
      fmt::format("{} for shared memory failed: {}", call, std::generic_category().message(error)),
      remedy_for(error, "check that it exists, is writable and has space, or use --stage mpi"),
      {.file = directory});
}

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }

 private:
  int value_;
};

class PosixSharedMemory final : public SharedMemory, private NonCopyable {
 public:
  PosixSharedMemory(Descriptor descriptor, std::size_t bytes, std::string directory)
      : descriptor_(std::move(descriptor)), size_(bytes), directory_(std::move(directory)) {
    map();
    if (size_ >= kWorthHugePages) advise_huge_pages(this->bytes());
  }
  ~PosixSharedMemory() override { munmap(address_, size_); }

  std::span<std::byte> bytes() const override { return {static_cast<std::byte*>(address_), size_}; }
  void reserve(std::size_t offset, std::size_t size) override {
    if (size == 0) return;
    if (offset > size_ || size > size_ - offset) fail_for_space(offset + size);
    const std::lock_guard lock(mutex_);
    const std::size_t first = offset / kChunk;
    const std::size_t last = (offset + size - 1) / kChunk;
    // Asked before anything is taken: filling shared memory to its end would leave none to others.
    const std::size_t missing = missing_bytes(first, last);
    if (missing == 0) return;
    // Whole chunks where there is plenty: ranks that take them at the same time would leave none to
    // each other. Else no more than what is wanted.
    const std::uint64_t free = free_shared_memory(directory_);
    if (missing <= free / kPlenty && allocate_chunks(first, last)) return;
    if (size > free || !allocate(offset, size)) fail_for_space(size);
  }

 private:
  bool allocate_chunks(std::size_t first, std::size_t last) {
    for (std::size_t chunk = first; chunk <= last; ++chunk) {
      if (reserved_[chunk]) continue;
      const std::size_t begin = chunk * kChunk;
      const std::size_t length = chunk_length(chunk);
      if (!allocate(begin, length)) return false;
      use_huge_pages(begin, length);
      reserved_[chunk] = true;
    }
    return true;
  }

  /// False where there is no space.
  bool allocate(std::size_t begin, std::size_t length) {
    int status = 0;
    do {
      status =
          posix_fallocate(descriptor_.get(), static_cast<off_t>(begin), static_cast<off_t>(length));
    } while (status == EINTR);
    if (status != 0 && status != ENOSPC) fail("fallocate", directory_, status);
    return status == 0;
  }

  // At a multiple of the huge page size, where the segment holds any: only there can they be used.
  void map() {
    const std::size_t alignment = size_ >= kWorthHugePages ? kHugePage : 1;
    const std::size_t room = size_ + alignment - 1;
    void* reserved = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) fail("mmap", directory_, errno);
    const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
    const auto aligned = (begin + alignment - 1) / alignment * alignment;
    address_ = mmap(reinterpret_cast<void*>(aligned), size_, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, descriptor_.get(), 0);
    if (address_ == MAP_FAILED) {
      const int error = errno;
      munmap(reserved, room);
      fail("mmap", directory_, error);
    }
    const std::size_t before = aligned - begin;
    if (before > 0) munmap(reserved, before);
    // Whole pages only: the mapping owns the last one to its end.
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t end = (aligned + size_ + page - 1) / page * page;
    if (begin + room > end) munmap(reinterpret_cast<void*>(end), begin + room - end);
  }

  // A segment of which one part got none is not asked about again: each try may cost the kernel a
  // search for free memory.
  void use_huge_pages(std::size_t begin, std::size_t length) {
    if (!has_huge_pages_ || length < kHugePage) return;
    has_huge_pages_ = collapse_into_huge_pages(bytes().subspan(begin, length));
  }

  std::size_t chunk_length(std::size_t chunk) const {
    return std::min(kChunk, size_ - chunk * kChunk);
  }
  std::size_t missing_bytes(std::size_t first, std::size_t last) const {
    std::size_t bytes = 0;
    for (std::size_t chunk = first; chunk <= last; ++chunk) {
      if (!reserved_[chunk]) bytes += chunk_length(chunk);
    }
    return bytes;
  }

  [[noreturn]] void fail_for_space(std::size_t needed) const {
    throw Error(ErrorKind::io,
                fmt::format("shared memory is full: {} more bytes are needed, {} are free", needed,
                            free_shared_memory(directory_)),
                "make it larger (mount -o remount,size=...), or lower --stage-bytes or --buffers",
                {.file = directory_});
  }

  static constexpr std::size_t kChunk = std::size_t{4} << 20;  // of whole huge pages
  static constexpr std::size_t kWorthHugePages = kChunk;
  static constexpr std::uint64_t kPlenty = 16;

  Descriptor descriptor_;
  std::size_t size_;
  std::string directory_;
  void* address_ = nullptr;
  std::mutex mutex_;
  bool has_huge_pages_ = size_ >= kWorthHugePages;  // until the system has refused one
  std::vector<bool> reserved_ = std::vector<bool>((size_ + kChunk - 1) / kChunk, false);
};

Descriptor create_unnamed(const std::string& directory) {
  return Descriptor(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

Descriptor create_named(const std::string& directory, Ticket& ticket) {
  std::random_device random;
  const std::string path =
      fmt::format("{}/forebay-{}-{:08x}{:08x}", directory, getpid(), random(), random());
  if (path.size() >= ticket.path.size()) fail("open", directory, ENAMETOOLONG);
  Descriptor descriptor(open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!descriptor.valid()) fail("open", directory, errno);
  ticket.named = 1;
  std::copy(path.begin(), path.end(), ticket.path.begin());
  return descriptor;
}

void describe(const Descriptor& descriptor, const std::string& directory, Ticket& ticket) {
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) fail("fstat", directory, errno);
  ticket.pid = getpid();
  ticket.descriptor = descriptor.get();
  ticket.device = status.st_dev;
  ticket.inode = status.st_ino;
}

/// `error`: why not.
Descriptor attach(const Ticket& ticket, int& error) {
  const std::string path = ticket.named != 0
                               ? std::string(ticket.path.data())
                               : fmt::format("/proc/{}/fd/{}", ticket.pid, ticket.descriptor);
  Descriptor descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  error = descriptor.valid() ? EACCES : errno;
  struct stat status {};
  // Another process namespace may have a process of that number with another file: compare.
  const bool same = descriptor.valid() && fstat(descriptor.get(), &status) == 0 &&
                    status.st_dev == ticket.device && status.st_ino == ticket.inode;
  if (!same) return Descriptor();
  error = 0;
  return descriptor;
}

/// Removes the name that a ticket gives, if any, whichever way its scope ends.
class NameRemover : private NonCopyable {
 public:
  explicit NameRemover(const Ticket& ticket) : ticket_(ticket) {}
  ~NameRemover() {
    if (ticket_.named != 0) unlink(ticket_.path.data());
  }

 private:
  const Ticket& ticket_;
};

/// One way of creating and attaching; an invalid descriptor on every rank when it did not work.
/// `error`: why not, on ranks where it was that one.
Descriptor create_and_attach(Communicator& comm, std::size_t bytes, const std::string& directory,
                             bool named, int& error) {
  Descriptor descriptor;
  Ticket created;
  const NameRemover remover(created);
  error = 0;
  collectively(comm, [&] {
    if (comm.rank() != 0) return;
    descriptor = named ? create_named(directory, created) : create_unnamed(directory);
    if (!descriptor.valid()) return;
    if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
      fail("ftruncate", directory, errno);
    }
    describe(descriptor, directory, created);
  });
  Ticket ticket = created;
  share_value(comm, ticket);
  if (comm.rank() != 0 && ticket.descriptor >= 0) descriptor = attach(ticket, error);
  const bool attached = everywhere(comm, descriptor.valid());
  return attached ? std::move(descriptor) : Descriptor();
}

}  // namespace

// The file system may promise more than there is memory behind it.
std::uint64_t free_shared_memory(const std::string& directory) {
  struct statvfs space {};
  // A tmpfs without a limit says that it has no blocks at all.
  const bool limited = statvfs(directory.c_str(), &space) == 0 && space.f_blocks > 0;
  const std::uint64_t in_directory =
      limited ? std::uint64_t{space.f_bavail} * space.f_frsize : UINT64_MAX;
  return std::min(in_directory, memory_limit().available_bytes);
}

std::unique_ptr<SharedMemory> share_posix(Communicator& comm, std::size_t bytes,
                                          const std::string& directory) {
  int error = 0;
  Descriptor descriptor = create_and_attach(comm, bytes, directory, false, error);
  if (!descriptor.valid()) descriptor = create_and_attach(comm, bytes, directory, true, error);
  std::unique_ptr<SharedMemory> memory;
  collectively(comm, [&] {
    if (error != 0) fail("attaching", directory, error);
    if (!descriptor.valid()) return;  // the rank that it failed on says why
    memory = std::make_unique<PosixSharedMemory>(std::move(descriptor), bytes, directory);
  });
  return memory;
}

}  // namespace forebay
