#include "storage/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/limits.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

[[noreturn]] void throw_io(const std::string& path, const char* what) {
  const int error = errno;
  throw Error(ErrorKind::io, fmt::format("{}: {}", what, std::generic_category().message(error)),
              remedy_for(error, "check the free space and the permissions of its directory"),
              {.file = path});
}

/// Unlike that of any other process, on other machines that see the folder too.
std::string temporary_name(const std::string& name) {
  std::random_device random;
  return fmt::format("{}.{}-{:08x}{:08x}.part", name, ::getpid(), random(), random());
}

std::string directory_of(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory.string();
}

std::string own_name(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      name_(std::filesystem::path(path_).filename().string()),
      temporary_(temporary_name(name_)) {
  directory_ = ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) throw_io(path_, "cannot make the file");
  make();
}

void AtomicFile::make() {
  fd_ = ::openat(directory_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  named_ = fd_ < 0 || ::access(own_name(fd_).c_str(), F_OK) != 0;
  if (!named_) return;
  if (fd_ >= 0) ::close(fd_);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  fd_ = ::openat(directory_, temporary_.c_str(), kFlags, 0666);
  if (fd_ >= 0) return;
  const int error = errno;
  ::close(std::exchange(directory_, -1));
  errno = error;
  throw_io(path_, "cannot make the file");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (named_ && !temporary_.empty()) ::unlinkat(directory_, temporary_.c_str(), 0);
  if (directory_ >= 0) ::close(directory_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_io(path_, "cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) throw_io(path_, "cannot flush to the device");
  if (!named_) {
    // A name that exists is replaced by renaming alone, so it gets one of its own first.
    if (::linkat(AT_FDCWD, own_name(fd_).c_str(), directory_, temporary_.c_str(),
                 AT_SYMLINK_FOLLOW) != 0) {
      throw_io(path_, "cannot name the file");
    }
    named_ = true;
  }
  if (::close(std::exchange(fd_, -1)) != 0) throw_io(path_, "cannot close");
  if (::renameat(directory_, temporary_.c_str(), directory_, name_.c_str()) != 0) {
    throw_io(path_, "cannot rename to it");
  }
  temporary_.clear();
  // The rename itself must survive a power failure too. Not every file system can do it: best
  // effort.
  ::fsync(directory_);
}

}  // namespace forebay
