#include "format/user_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "storage/atomic_file.hpp"
#include "storage/file_error.hpp"
#include "storage/read_fully.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntryEnd = ".forebay";

class Descriptor : private NonCopyable {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// The absolute path in environment variable `name`.
std::optional<fs::path> folder_in(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || !fs::path(text).is_absolute()) return {};
  return fs::path(text);
}

struct stat status_of(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw open_error(path, errno);
  return status;
}

bool is_of_us_or_root(const struct stat& status) {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

/// Whether others than this user and root may put files, and links, into the directory.
bool others_may_write(const struct stat& directory) {
  return !is_of_us_or_root(directory) || (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

bool not_used(const fs::path& folder, const char* why) {
  log(LogLevel::info, "{}: not used as a cache: {}", folder.string(), why);
  return false;
}

/// Whether the directory, if it is there, is this user's own. It is closed to others, unless it is
/// where a link has led, and so may be there for something else.
bool is_ours(const fs::path& folder, bool by_link) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened.valid()) return true;  // what is wrong with it is told where it is used
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0 || status.st_uid != ::geteuid()) {
    return not_used(folder, "it belongs to another user");
  }
  if (!others_may_write(status)) return true;
  if (by_link) return not_used(folder, "a link leads to it, and others may write to it");
  return ::fchmod(opened.get(), status.st_mode & 0777 & ~(S_IWGRP | S_IWOTH)) == 0;
}

/// Of an entry of a cache, or of one that is being written.
bool is_name_of_entry(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  return name.find_first_not_of("0123456789abcdef") == kDigits &&
         name.substr(kDigits).starts_with(kEntryEnd);
}

/// Whether a link may have led there on purpose: to a folder for nothing but this cache.
bool holds_only_entries(const fs::path& folder) {
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (!is_name_of_entry(entry->path().filename().native())) return false;
  }
  return !failed;
}

/// Where the cache is, if `folder` is one, or is to be made: it must be this user's, and no link
/// that others may have made.
std::optional<fs::path> cache_at(const fs::path& folder) {
  struct stat found {
  }, parent{};
  const bool is_link = ::lstat(folder.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
  if (!is_link) return is_ours(folder, false) ? std::optional(folder) : std::nullopt;
  std::error_code failed;
  const fs::path there = fs::canonical(folder, failed);
  if (::stat(folder.parent_path().c_str(), &parent) != 0 || others_may_write(parent) ||
      !is_of_us_or_root(found)) {
    not_used(folder, "it is a link that another user may have made");
  } else if (failed) {
    not_used(folder, "it is a link that leads nowhere");
  } else if (is_ours(there, true)) {
    if (holds_only_entries(there)) return there;
    not_used(folder, "it is a link to a folder that holds other files");
  }
  return {};
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::io, why + ", in a directory that others may write to",
              "replace it by a file of your own, or take that right from others (chmod go-w)",
              {.file = path});
}

/// Where others may write, no link is followed, and what belongs to somebody else than this user,
/// root or the owner of the directory is not read. Throws not_found, io.
Descriptor open_trusted(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) throw open_error(path, errno);
  const struct stat around = status_of(directory.get(), path);
  const bool wary = others_may_write(around);
  const std::string name = fs::path(path).filename().string();
  Descriptor file(::openat(directory.get(), name.c_str(),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | (wary ? O_NOFOLLOW : 0)));
  if (!file.valid() && wary && errno == ELOOP) refuse(path, "it is a link");
  if (!file.valid()) throw open_error(path, errno);
  const struct stat status = status_of(file.get(), path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::io, "it is no regular file", "remove it", {.file = path});
  }
  if (wary && !is_of_us_or_root(status) && status.st_uid != around.st_uid) {
    refuse(path, fmt::format("it belongs to another user ({})", status.st_uid));
  }
  return file;
}

}  // namespace

std::string hash_text(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::optional<std::string> user_cache_path(const std::string& identity) {
  std::optional<fs::path> cache = folder_in("XDG_CACHE_HOME");
  if (!cache) {
    if (const auto home = folder_in("HOME")) cache = *home / ".cache";
  }
  if (!cache) return {};
  const auto folder = cache_at(*cache / "forebay");
  if (!folder) return {};
  return (*folder / (hash_text(identity).append(kEntryEnd))).string();
}

std::vector<std::byte> read_small_file(const std::string& path, std::uint64_t most_bytes,
                                       const std::string& remedy) {
  const Descriptor file = open_trusted(path);
  const auto size = static_cast<std::uint64_t>(status_of(file.get(), path).st_size);
  if (size > most_bytes) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{} bytes are more than the {} that such a file has", size, most_bytes),
                remedy, {.file = path});
  }
  std::vector<std::byte> bytes(size);
  const ReadResult read = read_fully(0, bytes, [&](std::byte* to, std::size_t count, auto at) {
    return ::pread(file.get(), to, count, static_cast<off_t>(at));
  });
  if (read.error != 0) throw read_error(path, read.filled, read.error);
  if (read.filled < size) throw end_of_file_error(path, 0, size, read.filled);
  return bytes;
}

void write_whole_file(const std::string& path, std::span<const std::byte> bytes) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);  // opening the file tells what failed
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace forebay
