#ifdef FOREBAY_URING

#include "storage/uring_ring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "storage/file_error.hpp"
#include "storage/uring_bulk_reader.hpp"

namespace forebay {
namespace {

// The kernel may lack memory for a request for a moment: a try each millisecond, for five seconds.
constexpr int kSubmitTries = 5000;
constexpr std::chrono::milliseconds kSubmitPause{1};

Error ring_error(const char* call, int error) {
  return {ErrorKind::io, fmt::format("{} failed ({})", call, errno_text(error)),
          "use '--engine pread'"};
}

// What every device accepts, for kernels older than 6.1, which cannot be asked.
constexpr std::uint64_t kSafeAlignment = 4096;

DirectRules rules_of(int fd) {
  DirectRules rules{kSafeAlignment, kSafeAlignment};
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0 && status.stx_dio_offset_align != 0) {
    rules = {status.stx_dio_offset_align, status.stx_dio_mem_align};
  }
#endif
  return rules;
}

}  // namespace

Ring::Ring(unsigned depth) {
  const int status = ::io_uring_queue_init(2 * depth, &ring_, 0);
  if (status != 0) {
    throw Error(ErrorKind::unsupported, uring_refusal(-status), "use '--engine pread'");
  }
  // Where only kernel threads can wait for a file (network file systems), they limit what is in
  // flight; the default is four a core. A kernel without this call keeps its default.
  unsigned workers[2] = {depth, 0};
  ::io_uring_register_iowq_max_workers(&ring_, workers);
}

Ring::~Ring() { ::io_uring_queue_exit(&ring_); }

bool Ring::register_files(std::span<const int> descriptors) {
  return ::io_uring_register_files(&ring_, descriptors.data(),
                                   static_cast<unsigned>(descriptors.size())) == 0;
}

io_uring_sqe& Ring::entry() {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  if (entry == nullptr) {
    submit();
    entry = ::io_uring_get_sqe(&ring_);
  }
  if (entry == nullptr) throw ring_error("io_uring_get_sqe", EBUSY);
  return *entry;
}

void Ring::submit() {
  for (int tries = 0; ::io_uring_sq_ready(&ring_) > 0;) {
    const int status = ::io_uring_submit(&ring_);
    if (status >= 0 || status == -EINTR) continue;
    const bool may_pass = status == -EAGAIN || status == -EBUSY;
    if (!may_pass || ++tries == kSubmitTries) throw ring_error("io_uring_submit", -status);
    std::this_thread::sleep_for(kSubmitPause);
  }
}

std::optional<RingAnswer> Ring::take() {
  io_uring_cqe* answer = nullptr;
  if (::io_uring_peek_cqe(&ring_, &answer) != 0) return std::nullopt;
  const RingAnswer taken{answer->user_data, answer->res};
  ::io_uring_cqe_seen(&ring_, answer);
  return taken;
}

bool Ring::wait(std::chrono::milliseconds limit) {
  io_uring_cqe* answer = nullptr;
  __kernel_timespec time{.tv_sec = limit.count() / 1000,
                         .tv_nsec = (limit.count() % 1000) * 1'000'000};
  const int status = ::io_uring_wait_cqe_timeout(&ring_, &answer, &time);
  if (status == 0) return true;
  if (status == -ETIME || status == -EINTR || status == -EAGAIN) return false;
  throw ring_error("io_uring_wait_cqe_timeout", -status);
}

int probe_uring() {
  io_uring ring{};
  const int status = ::io_uring_queue_init(2, &ring, 0);
  if (status != 0) return -status;
  io_uring_probe* probe = ::io_uring_get_probe_ring(&ring);
  const bool can_read = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  ::io_uring_free_probe(probe);
  ::io_uring_queue_exit(&ring);
  return can_read ? 0 : ENOSYS;
}

void DirectFile::open(int fd, const std::string& path) {
  const std::string same_file = fmt::format("/proc/self/fd/{}", fd);
  fd_ = ::open(same_file.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (fd_ < 0) {
    refuse(path, errno);
  } else {
    rules_ = rules_of(fd_);
  }
}

DirectFile::~DirectFile() {
  if (fd_ >= 0) ::close(fd_);
}

void DirectFile::refuse(const std::string& path, int error) {
  rules_ = {};
  log_message(LogLevel::info,
              fmt::format("{}: reading through the page cache, because O_DIRECT is refused ({})",
                          path, errno_text(error)));
}

}  // namespace forebay

#endif
