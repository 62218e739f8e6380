#include "storage/direct_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "forebay/log.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

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
