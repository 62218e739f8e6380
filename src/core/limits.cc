#include "core/limits.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <system_error>

#include "core/memory_limit.hpp"

namespace forebay {
namespace {

std::optional<std::uint64_t> soft_limit(int resource) {
  struct rlimit limit {};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return limit.rlim_cur;
}

std::string limit_of(int resource) {
  const auto limit = soft_limit(resource);
  return limit ? std::to_string(*limit) : "unlimited";
}

/// "Threads:" of /proc/self/status.
std::string threads_now() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Threads:")) continue;
    return line.substr(std::min(line.find_first_of("0123456789"), line.size()));
  }
  return "?";
}

std::string lowering(std::string_view lower) {
  if (lower.empty()) return "allow this process more memory";
  return fmt::format("lower {}, or allow more", lower);
}

}  // namespace

std::optional<std::uint64_t> largest_file() { return soft_limit(RLIMIT_FSIZE); }

std::string memory_left() {
  const MemoryLimit limit = memory_limit();
  return fmt::format("{} of {} bytes are left ({})", limit.available_bytes, limit.limit_bytes,
                     limit.source);
}

std::string remedy_for(int error, std::string otherwise) {
  switch (error) {
    case EMFILE:
      return fmt::format("raise the limit of open files ('ulimit -n', now {})",
                         limit_of(RLIMIT_NOFILE));
    case ENFILE:
      return "raise the system's limit of open files ('sysctl fs.file-max')";
    case EFBIG:
      return fmt::format(
          "raise the limit of sizes of files ('ulimit -f', now {} bytes), or write to a file "
          "system that takes larger ones",
          limit_of(RLIMIT_FSIZE));
    case ENOSPC:
      return "make room on its file system, or write elsewhere";
    case EDQUOT:
      return "make room in this user's quota, or write elsewhere";
    case ENOMEM:
      return fmt::format("{}: {}", lowering({}), memory_left());
    default:
      return otherwise;
  }
}

void limit_arenas() {
#ifdef M_ARENA_MAX  // of glibc
  constexpr std::uint64_t kArenaBytes = std::uint64_t{64} << 20, kMost = 1024;
  const auto limit = soft_limit(RLIMIT_AS);
  if (!limit || std::getenv("MALLOC_ARENA_MAX") != nullptr) return;
  ::mallopt(M_ARENA_MAX,
            static_cast<int>(std::clamp(*limit / 8 / kArenaBytes, std::uint64_t{1}, kMost)));
#endif
}

Error no_memory(std::uint64_t bytes, std::string_view what, std::string_view lower) {
  return {ErrorKind::io,
          fmt::format("{} bytes of memory are needed for {}, and {}", bytes, what, memory_left()),
          lowering(lower)};
}

void require_memory(std::uint64_t bytes, std::string_view what, std::string_view lower) {
  if (bytes > memory_limit().available_bytes) throw no_memory(bytes, what, lower);
}

Error as_error(const std::exception& failure, std::string_view doing, std::string_view lower) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return {ErrorKind::io, fmt::format("there was no memory for {}: {}", doing, memory_left()),
            lowering(lower)};
  }
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&failure)) {
    return {ErrorKind::io, fmt::format("{}: {}", doing, failure.what()),
            remedy_for(of_system->code().value(), "")};
  }
  return {ErrorKind::io, failure.what()};
}

Error no_thread(const std::string& name, int error) {
  return {ErrorKind::io,
          fmt::format("thread '{}' cannot be started ({}): this process has {} threads, and {}",
                      name, std::generic_category().message(error), threads_now(), memory_left()),
          fmt::format("raise the limit of processes ('ulimit -u', now {}) or that of memory, of "
                      "which a thread's stack takes its part ('ulimit -s', now {} bytes), or lower "
                      "--decode-threads, --depth or --roots",
                      limit_of(RLIMIT_NPROC), limit_of(RLIMIT_STACK))};
}

}  // namespace forebay
