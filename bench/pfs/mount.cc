#include "pfs/mount.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/clock.hpp"
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

// Reads that the kernel has ahead of the readers, at most; its own default of 12 is less than a
// parallel file system's client allows.
constexpr unsigned kMostBackground = 64;
constexpr unsigned kCongested = 48;

/// A read that waits for its time.
struct Pending {
  fuse_req_t request;
  int file;
  std::uint64_t offset;
  std::uint64_t length;
  bool fails;
};

/// Returns whether the client got bytes.
bool answer(const Pending& read, bool due) {
  if (read.fails || !due) {
    fuse_reply_err(read.request, EIO);
    return false;
  }
  fuse_bufvec bytes = FUSE_BUFVEC_INIT(read.length);
  bytes.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  bytes.buf[0].fd = read.file;
  bytes.buf[0].pos = static_cast<off_t>(read.offset);
  return fuse_reply_data(read.request, &bytes, FUSE_BUF_SPLICE_MOVE) == 0;
}

}  // namespace

/// The FUSE callbacks of a Mount, which find it in the session's user data.
struct Operations {
  static Mount& mount_of(fuse_req_t request) {
    return *static_cast<Mount*>(fuse_req_userdata(request));
  }

  /// The same, for all but reads: counted and free of charge.
  static Mount& metadata(fuse_req_t request) {
    Mount& mount = mount_of(request);
    mount.servers_.meter.count_metadata(mount.client_);
    return mount;
  }

  static double timeout(const Mount& mount) {
    return std::chrono::duration<double>(mount.options_.attribute_timeout).count();
  }

  static void init(void* user_data, fuse_conn_info* connection) {
    const Mount& mount = *static_cast<const Mount*>(user_data);
    connection->max_background = kMostBackground;
    connection->congestion_threshold = kCongested;
    if (const auto kilobytes = mount.options_.read_ahead_kb) {
      connection->max_readahead =
          std::max(connection->max_readahead, static_cast<unsigned>(*kilobytes * 1024));
    }
  }

  static void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    Mount& mount = metadata(request);
    fuse_entry_param entry{};
    if (const int error = mount.inodes_.lookup(parent, name, entry.ino, entry.attr)) {
      fuse_reply_err(request, error);
      return;
    }
    entry.attr_timeout = entry.entry_timeout = timeout(mount);
    fuse_reply_entry(request, &entry);
  }

  static void forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t times) {
    mount_of(request).inodes_.forget(inode, times);
    fuse_reply_none(request);
  }

  static void getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
    const Mount& mount = metadata(request);
    struct stat status {};
    if (const int error = mount.inodes_.attributes(inode, status)) {
      fuse_reply_err(request, error);
    } else {
      fuse_reply_attr(request, &status, timeout(mount));
    }
  }

  static void readlink(fuse_req_t request, fuse_ino_t inode) {
    std::string text;
    if (const int error = metadata(request).inodes_.target(inode, text)) {
      fuse_reply_err(request, error);
    } else {
      fuse_reply_readlink(request, text.c_str());
    }
  }

  static void open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
    const Mount& mount = metadata(request);
    Descriptor opened;
    if (const int error = mount.inodes_.open(inode, O_RDONLY, opened)) {
      fuse_reply_err(request, error);
      return;
    }
    // The backing file system must not read ahead beyond what the model was asked for.
    ::posix_fadvise(opened.get(), 0, 0, POSIX_FADV_RANDOM);
    file->direct_io = mount.options_.direct_io;
    file->keep_cache = !mount.options_.direct_io;
    file->fh = static_cast<std::uint64_t>(opened.release());
    fuse_reply_open(request, file);
  }

  static void read(fuse_req_t request, fuse_ino_t /*inode*/, std::size_t size, off_t offset,
                   fuse_file_info* file) {
    Mount& mount = mount_of(request);
    const std::int64_t now = now_ns();
    const auto begin = static_cast<std::uint64_t>(offset);
    const int backing = static_cast<int>(file->fh);
    struct stat status {};
    if (::fstat(backing, &status) != 0) {
      fuse_reply_err(request, errno);
      return;
    }
    const auto end = static_cast<std::uint64_t>(status.st_size);
    if (size == 0 || begin >= end) {
      fuse_reply_buf(request, nullptr, 0);
      return;
    }
    const Faults& faults = mount.servers_.faults;
    const std::uint64_t file_number = status.st_ino;
    const std::uint64_t wanted = std::min<std::uint64_t>(size, end - begin);
    const std::uint64_t length = faults.allowed(wanted, !mount.options_.direct_io);
    const Answer modelled = mount.servers_.model.submit(
        {file_number, begin, length, faults.stall(file_number, begin, length)}, now);
    mount.servers_.meter.count_read(mount.client_, modelled, now);
    ::posix_fadvise(backing, offset, static_cast<off_t>(length), POSIX_FADV_WILLNEED);
    const Pending pending{request, backing, begin, length,
                          faults.fails(file_number, begin, length)};
    mount.servers_.queue.push(
        modelled.time_ns, [pending, due_ns = modelled.time_ns, &mount](bool due) {
          const std::int64_t woken_ns = now_ns();
          const bool delivered = answer(pending, due);
          if (due) {
            mount.servers_.meter.count_answer(mount.client_, !delivered, due_ns, woken_ns);
          }
        });
  }

  static void release(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
    // Reads that are still due hold the file open in the kernel: none is left here.
    ::close(static_cast<int>(file->fh));
    fuse_reply_err(request, 0);
  }

  static void opendir(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
    Descriptor opened;
    if (const int error = metadata(request).inodes_.open(inode, O_RDONLY | O_DIRECTORY, opened)) {
      fuse_reply_err(request, error);
      return;
    }
    DIR* folder = ::fdopendir(opened.get());
    if (folder == nullptr) {
      fuse_reply_err(request, errno);
      return;
    }
    opened.release();  // the stream's from here on
    file->fh = reinterpret_cast<std::uint64_t>(folder);
    fuse_reply_open(request, file);
  }

  static void readdir(fuse_req_t request, fuse_ino_t /*inode*/, std::size_t size, off_t offset,
                      fuse_file_info* file) {
    DIR* folder = reinterpret_cast<DIR*>(file->fh);
    ::seekdir(folder, offset);
    std::vector<char> buffer(size);
    std::size_t used = 0;
    while (const dirent* entry = ::readdir(folder)) {
      struct stat status {};
      status.st_ino = entry->d_ino;
      status.st_mode = static_cast<mode_t>(entry->d_type << 12);
      const std::size_t needs = fuse_add_direntry(request, buffer.data() + used, size - used,
                                                  entry->d_name, &status, entry->d_off);
      if (needs > size - used) break;
      used += needs;
    }
    fuse_reply_buf(request, buffer.data(), used);
  }

  static void releasedir(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
    ::closedir(reinterpret_cast<DIR*>(file->fh));
    fuse_reply_err(request, 0);
  }
};

namespace {

const fuse_lowlevel_ops& fuse_operations() {
  static const fuse_lowlevel_ops table = [] {
    fuse_lowlevel_ops made{};
    made.init = Operations::init;
    made.lookup = Operations::lookup;
    made.forget = Operations::forget;
    made.getattr = Operations::getattr;
    made.readlink = Operations::readlink;
    made.open = Operations::open;
    made.read = Operations::read;
    made.release = Operations::release;
    made.opendir = Operations::opendir;
    made.readdir = Operations::readdir;
    made.releasedir = Operations::releasedir;
    return made;
  }();
  return table;
}

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
