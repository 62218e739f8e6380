#include "core/read_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

namespace forebay {
namespace {

constexpr int kNone = -1;

/// A system call that waits for storage: which of its arguments say for what.
struct Call {
  long number;
  int descriptor = kNone;
  int path = kNone;
  int offset = kNone;
  int address = kNone;  ///< of mapped bytes
};

constexpr Call kCalls[] = {
    {.number = SYS_read, .descriptor = 0},
    {.number = SYS_readv, .descriptor = 0},
    {.number = SYS_pread64, .descriptor = 0, .offset = 3},
    {.number = SYS_preadv, .descriptor = 0, .offset = 3},
    {.number = SYS_preadv2, .descriptor = 0, .offset = 3},
    {.number = SYS_getdents64, .descriptor = 0},
    {.number = SYS_fstat, .descriptor = 0},
    {.number = SYS_fstatfs, .descriptor = 0},
    {.number = SYS_lseek, .descriptor = 0},
    {.number = SYS_fadvise64, .descriptor = 0},
    {.number = SYS_fcntl, .descriptor = 0},
    {.number = SYS_close, .descriptor = 0},
    {.number = SYS_openat, .path = 1},
    {.number = SYS_newfstatat, .descriptor = 0, .path = 1},
    {.number = SYS_statx, .descriptor = 0, .path = 1},
    {.number = SYS_statfs, .path = 0},
    {.number = SYS_faccessat, .path = 1},
    {.number = SYS_readlinkat, .path = 1},
#ifdef SYS_open  // not on newer architectures
    {.number = SYS_open, .path = 0},
    {.number = SYS_stat, .path = 0},
    {.number = SYS_lstat, .path = 0},
    {.number = SYS_access, .path = 0},
    {.number = SYS_readlink, .path = 0},
#endif
    {.number = SYS_madvise, .address = 0},
    {.number = SYS_mincore, .address = 0},
};

/// What /proc says of a thread that sleeps; nothing of one that runs or is gone.
std::string call_of(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/syscall", thread));
  std::string text;
  std::getline(file, text);
  return text == "running" ? "" : text;
}

/// Grows whenever it runs.
std::string runs_of(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/status", thread));
  std::string runs;
  for (std::string line; std::getline(file, line);) {
    if (line.find("ctxt_switches") != std::string::npos) runs += line;
  }
  return runs;
}

/// A string of this process that the thread may have given up meanwhile: so it is not simply read.
std::string text_at(std::uint64_t address) {
  std::array<char, PATH_MAX> text{};
  const int fd = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const auto got = ::pread(fd, text.data(), text.size() - 1, static_cast<off_t>(address));
  ::close(fd);
  return got > 0 ? std::string(text.data()) : std::string();
}

std::string path_of(std::uint64_t descriptor) {
  std::array<char, PATH_MAX> path{};
  const std::string link = fmt::format("/proc/self/fd/{}", static_cast<int>(descriptor));
  const auto length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The offset of a descriptor that has been read from its beginning on.
std::optional<std::uint64_t> position_of(std::uint64_t descriptor) {
  std::ifstream file(fmt::format("/proc/self/fdinfo/{}", static_cast<int>(descriptor)));
  std::string word;
  std::uint64_t position = 0;
  if (file >> word >> position && word == "pos:") return position;
  return std::nullopt;
}

/// Rather than a socket, a pipe or a terminal.
bool is_storage(const std::string& path) {
  if (!path.starts_with('/')) return false;
  struct stat status {};
  if (!path.starts_with("/dev/") || path.starts_with("/dev/shm/")) return true;
  return ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
}

UnansweredRead read_of(const Call& call, std::span<const std::uint64_t> arguments) {
  const auto value = [&](int argument) { return arguments[static_cast<std::size_t>(argument)]; };
  UnansweredRead read;
  if (call.path != kNone) read.path = text_at(value(call.path));
  if (call.descriptor != kNone && read.path.empty()) {
    read.path = path_of(value(call.descriptor));
    if (call.number == SYS_read) read.offset = position_of(value(call.descriptor));
  }
  if (call.offset != kNone) read.offset = value(call.offset);
  if (call.address != kNone) read.mapped = reinterpret_cast<const std::byte*>(value(call.address));
  return read;
}

/// What the call in `text` waits for, if that is storage.
std::optional<UnansweredRead> read_in(const std::string& text, const std::byte* mapped) {
  std::istringstream words(text);
  long number = 0;
  if (!(words >> number)) return std::nullopt;
  if (number < 0) return UnansweredRead{.path = {}, .offset = {}, .mapped = mapped};
  const auto* const call = std::ranges::find(kCalls, number, &Call::number);
  if (call == std::end(kCalls)) return std::nullopt;
  std::array<std::uint64_t, 6> arguments{};
  std::string word;
  for (std::uint64_t& argument : arguments) {
    if (!(words >> word)) return std::nullopt;
    argument = std::strtoull(word.c_str(), nullptr, 16);
  }
  UnansweredRead read = read_of(*call, arguments);
  const bool by_name = call->path != kNone || call->address != kNone || call->number == SYS_close;
  if (!by_name && !is_storage(read.path)) return std::nullopt;
  return read;
}

thread_local std::shared_ptr<ReadWatch> watch_here;

}  // namespace

std::shared_ptr<ReadWatch> ReadWatch::of_this_thread() { return watch_here; }

ReadWatch::Member::Member(std::shared_ptr<ReadWatch> watch)
    : before_(std::exchange(watch_here, std::move(watch))) {
  if (!watch_here) return;
  const std::lock_guard lock(watch_here->mutex_);
  watch_here->threads_.push_back(
      {.id = static_cast<int>(::gettid()), .mapped = &detail::mapped_here});
}

ReadWatch::Member::~Member() {
  if (watch_here) {
    const std::lock_guard lock(watch_here->mutex_);
    const auto mine = [](const Thread& thread) { return thread.mapped == &detail::mapped_here; };
    watch_here->threads_.remove_if(mine);
  }
  watch_here = std::move(before_);
}

std::optional<UnansweredRead> ReadWatch::look(std::chrono::milliseconds limit) {
  const auto step = looks_.step();
  const std::lock_guard lock(mutex_);
  for (Thread& thread : threads_) {
    const std::string call = call_of(thread.id);
    std::string seen = call.empty() ? call : call + runs_of(thread.id);
    thread.waited = seen.empty() || seen != thread.seen ? Clock::duration(0) : thread.waited + step;
    thread.seen = std::move(seen);
    if (thread.waited < limit || thread.seen.empty()) continue;
    if (auto read = read_in(call, thread.mapped->load(std::memory_order_relaxed))) return read;
  }
  return std::nullopt;
}

}  // namespace forebay
