// One file a key. It is written under another name first, so that nobody reads half of it.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>

#include "comm/net/socket.hpp"
#include "core/limits.hpp"
#include "forebay/error.hpp"
#include "forebay/rendezvous.hpp"

namespace forebay {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstRest{2};
constexpr milliseconds kLongestPause{100};

class FileRendezvous final : public Rendezvous {
 public:
  explicit FileRendezvous(std::string folder) : folder_(std::move(folder)) {
    struct stat status {};
    if (stat(folder_.c_str(), &status) != 0) fail("stat", folder_, errno);
    if (!S_ISDIR(status.st_mode)) fail("opening", folder_, ENOTDIR);
  }

  void set(const std::string& key, std::span<const std::byte> value) override {
    const std::string path = path_of(key);
    const std::string draft = fmt::format("{}.{}.new", path, getpid());
    {
      const net::Descriptor file(
          open(draft.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
      if (!file.valid()) fail("creating", draft, errno);
      const ssize_t written = write(file.get(), value.data(), value.size());
      if (written != static_cast<ssize_t>(value.size()) || fsync(file.get()) != 0) {
        const int error = written >= 0 && errno == 0 ? ENOSPC : errno;
        unlink(draft.c_str());
        fail("writing", draft, error);
      }
    }
    if (rename(draft.c_str(), path.c_str()) == 0) return;
    const int error = errno;
    unlink(draft.c_str());
    fail("renaming", draft, error);
  }

  std::optional<std::vector<std::byte>> get(const std::string& key, milliseconds limit) override {
    const auto deadline = steady_clock::now() + limit;
    const std::string path = path_of(key);
    for (milliseconds rest = kFirstRest;; rest = std::min(2 * rest, kLongestPause)) {
      if (auto value = read(path)) return value;
      const auto now = steady_clock::now();
      if (now >= deadline) return std::nullopt;
      std::this_thread::sleep_for(std::min<steady_clock::duration>(rest, deadline - now));
      look_anew();
    }
  }

  void erase(const std::string& key) noexcept override {
    try {
      unlink(path_of(key).c_str());
    } catch (const std::exception&) {
      return;  // a file stays, which a later job does not take for its own
    }
  }

 private:
  std::string path_of(const std::string& key) const { return folder_ + "/forebay-" + key; }

  std::optional<std::vector<std::byte>> read(const std::string& path) const {
    const net::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid()) {
      if (errno == ENOENT || errno == ESTALE) return std::nullopt;
      fail("opening", path, errno);
    }
    std::vector<std::byte> value(kLongestValue + 1);
    const ssize_t size = ::read(file.get(), value.data(), value.size());
    if (size < 0 && errno == ESTALE) return std::nullopt;
    if (size < 0) fail("reading", path, errno);
    value.resize(static_cast<std::size_t>(size));
    return value;
  }

  /// NFS remembers for half a minute that a name did not exist, unless somebody opens the folder.
  void look_anew() const {
    if (DIR* const folder = opendir(folder_.c_str())) closedir(folder);
  }

  [[noreturn]] static void fail(const char* doing, const std::string& path, int error) {
    throw Error(
        ErrorKind::io,
        fmt::format("{} at the rendezvous: {}", doing, std::generic_category().message(error)),
        remedy_for(error, "give a folder that all ranks see and this user may write to"),
        {.file = path});
  }

  std::string folder_;
};

}  // namespace

std::unique_ptr<Rendezvous> file_rendezvous(const std::string& folder) {
  return std::make_unique<FileRendezvous>(folder);
}

}  // namespace forebay
