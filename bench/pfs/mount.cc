#include "pfs/mount.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "forebay/error.hpp"

namespace forebay::pfs {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

InodeTable::InodeTable(const std::string& backing) {
  Descriptor handle(::open(backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (handle.get() < 0 || ::fstat(handle.get(), &status) != 0) {
    throw Error(ErrorKind::io, fmt::format("cannot be opened: {}", std::strerror(errno)),
                "give a directory as the backing store", {.file = backing});
  }
  const std::pair key(status.st_dev, status.st_ino);
  numbers_[key] = kRoot;
  inodes_[kRoot] = {std::move(handle), key, 1};
}

const InodeTable::Inode* InodeTable::find(std::uint64_t inode) const {
  const auto found = inodes_.find(inode);
  return found == inodes_.end() ? nullptr : &found->second;
}

int InodeTable::lookup(std::uint64_t parent, const char* name, std::uint64_t& inode,
                       struct stat& status) {
  const Inode* folder = find(parent);
  if (folder == nullptr) return ESTALE;
  Descriptor handle(::openat(folder->handle.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (handle.get() < 0 || ::fstat(handle.get(), &status) != 0) return errno;
  const std::pair key(status.st_dev, status.st_ino);
  const auto [entry, fresh] = numbers_.try_emplace(key, next_);
  inode = entry->second;
  if (fresh) inodes_[next_++] = {std::move(handle), key, 0};
  ++inodes_[inode].lookups;
  return 0;
}

void InodeTable::forget(std::uint64_t inode, std::uint64_t times) {
  const auto found = inodes_.find(inode);
  if (found == inodes_.end() || inode == kRoot) return;
  if (found->second.lookups > times) {
    found->second.lookups -= times;
    return;
  }
  numbers_.erase(found->second.backing);
  inodes_.erase(found);
}

int InodeTable::attributes(std::uint64_t inode, struct stat& status) const {
  const Inode* found = find(inode);
  if (found == nullptr) return ESTALE;
  return ::fstat(found->handle.get(), &status) == 0 ? 0 : errno;
}

int InodeTable::open(std::uint64_t inode, int flags, Descriptor& opened) const {
  const Inode* found = find(inode);
  if (found == nullptr) return ESTALE;
  // An O_PATH handle is opened through its name in /proc.
  const std::string path = fmt::format("/proc/self/fd/{}", found->handle.get());
  opened = Descriptor(::open(path.c_str(), flags | O_CLOEXEC));
  return opened.get() >= 0 ? 0 : errno;
}

int InodeTable::target(std::uint64_t inode, std::string& text) const {
  const Inode* found = find(inode);
  if (found == nullptr) return ESTALE;
  std::array<char, 4096> buffer{};
  const ssize_t length = ::readlinkat(found->handle.get(), "", buffer.data(), buffer.size());
  if (length < 0) return errno;
  text.assign(buffer.data(), static_cast<std::size_t>(length));
  return 0;
}

namespace {

/// Wakes a poll() when a stop is requested.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop)
      : event_(::eventfd(0, EFD_CLOEXEC)),
        callback_(stop, [this] { ::eventfd_write(number(), 1); }) {}
  int number() const { return event_.get(); }

 private:
  Descriptor event_;
  std::stop_callback<std::function<void()>> callback_;
};

fuse_session* make_session(const MountOptions& options, Mount* mount) {
  // ro: the kernel itself answers writes with EROFS.
  std::vector<std::string> words{"forebay-pfs", "-o",
                                 "ro,allow_other,fsname=forebay-pfs,subtype=forebay-pfs"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  fuse_session* session =
      fuse_session_new(&arguments, &fuse_operations(), sizeof(fuse_lowlevel_ops), mount);
  fuse_opt_free_args(&arguments);
  if (session == nullptr) {
    throw Error(ErrorKind::io, "no FUSE session can be made", "check that libfuse3 works here",
                {.file = options.mount_point});
  }
  return session;
}

}  // namespace

Mount::Mount(MountOptions options, Servers servers, std::size_t client)
    : options_(std::move(options)),
      servers_(servers),
      client_(client),
      inodes_(options_.backing),
      session_(make_session(options_, this), fuse_session_destroy) {
  if (fuse_session_mount(session_.get(), options_.mount_point.c_str()) != 0) {
    throw Error(ErrorKind::io, "cannot be mounted on",
                "give an empty directory, and check for root and /dev/fuse",
                {.file = options_.mount_point});
  }
  mounted_ = true;
  thread_ = HelperThread(fmt::format("pfs-{}", client), Placement{},
                         [this](const std::stop_token& stop) { serve(stop); });
  try {
    if (options_.read_ahead_kb) set_read_ahead();
  } catch (...) {
    unmount();
    throw;
  }
}

Mount::~Mount() {
  unmount();
  thread_.stop();
}

void Mount::unmount() {
  // Not fuse_session_unmount(): it closes the device, and readers that wait could not be answered.
  if (std::exchange(mounted_, false)) ::umount2(options_.mount_point.c_str(), MNT_DETACH);
}

void Mount::serve(const std::stop_token& stop) {
  const StopSignal stopped(stop);
  std::array<pollfd, 2> waiting{
      {{fuse_session_fd(session_.get()), POLLIN, 0}, {stopped.number(), POLLIN, 0}}};
  fuse_buf buffer{};
  while (!stop.stop_requested() && fuse_session_exited(session_.get()) == 0) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    if ((waiting[0].revents & (POLLIN | POLLERR | POLLHUP)) == 0) continue;
    const int received = fuse_session_receive_buf(session_.get(), &buffer);
    if (received == -EINTR || received == -EAGAIN) continue;
    if (received <= 0) break;  // unmounted, and the last open file is gone
    fuse_session_process_buf(session_.get(), &buffer);
  }
  std::free(buffer.mem);
}

void Mount::set_read_ahead() const {
  struct stat status {};
  // The answer comes from our own thread, after the session's first exchange: the kernel will not
  // change the value any more.
  if (::stat(options_.mount_point.c_str(), &status) == 0) {
    std::ofstream setting(fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(status.st_dev),
                                      minor(status.st_dev)));
    if (setting << *options_.read_ahead_kb << std::flush) return;
  }
  throw Error(ErrorKind::io, "the read-ahead of the mount cannot be set",
              "run as root, or leave --read-ahead-kb out", {.file = options_.mount_point});
}

}  // namespace forebay::pfs
