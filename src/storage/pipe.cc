#include "storage/pipe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/limits.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;

/// Waits are made of these, so that one in which the process was stopped counts no more.
constexpr milliseconds kSlice{250};
constexpr milliseconds kLookForReader{20};
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

/// Calls `done` until it holds; each call takes `slice`. False: not within `limit`.
template <typename Done>
bool holds_within(milliseconds limit, milliseconds slice, Done done) {
  for (milliseconds waited{0}; limit.count() == 0 || waited < limit; waited += slice) {
    if (done(limit.count() == 0 ? slice : std::min(slice, limit - waited))) return true;
  }
  return false;
}

/// Opened as one that does not wait: the system would do so for ever.
int open_named_pipe(const std::string& path, milliseconds limit) {
  int fd = -1;
  const bool read = holds_within(limit, kLookForReader, [&](milliseconds slice) {
    fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENXIO) throw output_error(path, errno);
    if (fd < 0) std::this_thread::sleep_for(slice);
    return fd >= 0;
  });
  if (!read) {
    throw Error(ErrorKind::io,
                fmt::format("nobody has read from this pipe for {} s", seconds(limit)),
                "start the program that reads it, or allow more time (--timeout)", {.file = path});
  }
  ::fcntl(fd, F_SETFL, O_WRONLY);
  return fd;
}

}  // namespace

bool is_pipe(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(fd) == 1;
}

bool wait_for_pipe(int fd, short events, milliseconds limit) {
  return holds_within(limit, kSlice, [&](milliseconds slice) {
    struct pollfd wanted {
      .fd = fd, .events = events, .revents = 0
    };
    return ::poll(&wanted, 1, static_cast<int>(slice.count())) >
           0;  // what fails is told by using it
  });
}

Error output_error(const std::string& path, int error) {
  return {ErrorKind::io, fmt::format("cannot write: {}", errno_text(error)),
          remedy_for(error, "check the path and the free space"), Where{.file = path}};
}

int open_output(const std::string& path, milliseconds limit) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    return open_named_pipe(path, limit);
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) throw output_error(path, errno);
  return fd;
}

InputBytes::InputBytes(std::string path, milliseconds limit)
    : path_(std::move(path)),
      limit_(limit),
      // A named pipe is waited for below. To files the flag means nothing.
      fd_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_ < 0) throw open_error(path_, errno);
  pipe_ = is_pipe(fd_);
  buffer_.resize(kBufferBytes);
}

InputBytes::~InputBytes() { ::close(fd_); }

InputBytes::int_type InputBytes::underflow() {
  for (;;) {
    const auto at = static_cast<std::uint64_t>(offset_);
    if (pipe_ && !wait_for_pipe(fd_, POLLIN, limit_)) {
      throw Error(ErrorKind::io,
                  fmt::format("nobody has written to this pipe for {} s", seconds(limit_)),
                  "start the program that writes it, or allow more time (--timeout)",
                  {.file = path_, .offset = at});
    }
    const ssize_t got = ::read(fd_, buffer_.data(), buffer_.size());
    if (got < 0 && (errno == EINTR || (errno == EAGAIN && pipe_))) continue;
    if (got < 0) throw read_error(path_, at, errno);
    if (got == 0) return traits_type::eof();
    offset_ += got;
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(*gptr());
  }
}

}  // namespace forebay
