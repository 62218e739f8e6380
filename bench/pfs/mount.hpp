// One mount of the modelled file system: a FUSE session, read-only, on a thread of its own.
//
// The thread takes requests in the kernel's order and never waits: a read is put to the model,
// which says when it is answered, and to the deadline queue, which answers then. Until that time
// the backing file system has a head start (POSIX_FADV_WILLNEED); whatever it takes longer shows as
// lateness. Everything but reads is answered at once.
//
// Every mount has a page cache of its own, although all show the same files: to the kernel, and to
// its users, mounts are different nodes.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "core/non_copyable.hpp"
#include "core/placement.hpp"
#include "pfs/faults.hpp"
#include "pfs/meter.hpp"
#include "pfs/model.hpp"

struct fuse_session;

namespace forebay::pfs {

// The inodes that a kernel knows of one mount, each with an open handle to the backing file.
//
// The kernel names inodes by numbers that we give out at lookup, and tells us when it has forgotten
// them. An O_PATH descriptor keeps the backing inode, so its number cannot be given to another file
// while somebody may ask for it: a file that is replaced in the backing directory gets a new entry.

/// A file descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// Not thread-safe: one thread serves a mount. Functions return 0 or an errno.
class InodeTable {
 public:
  static constexpr std::uint64_t kRoot = 1;

  /// Throws io when `backing` is no directory that can be opened.
  explicit InodeTable(const std::string& backing);

  /// Finds `name` in directory `parent`. Each success has to be forgotten once.
  int lookup(std::uint64_t parent, const char* name, std::uint64_t& inode, struct stat& status);
  void forget(std::uint64_t inode, std::uint64_t times);
  int attributes(std::uint64_t inode, struct stat& status) const;
  /// Opens what the inode stands for with open(2)'s `flags`.
  int open(std::uint64_t inode, int flags, Descriptor& opened) const;
  /// What a symbolic link says.
  int target(std::uint64_t inode, std::string& text) const;

 private:
  struct Inode {
    Descriptor handle;
    std::pair<dev_t, ino_t> backing;
    std::uint64_t lookups = 0;
  };

  const Inode* find(std::uint64_t inode) const;

  std::map<std::uint64_t, Inode> inodes_;
  std::map<std::pair<dev_t, ino_t>, std::uint64_t> numbers_;
  std::uint64_t next_ = kRoot + 1;
};

struct MountOptions {
  std::string backing;
  std::string mount_point;
  bool direct_io = false;  ///< no page cache; shared mappings are refused
  /// Most that the kernel reads ahead, KiB; Linux's default when not given.
  std::optional<std::uint64_t> read_ahead_kb;
  /// How long the kernel trusts names and attributes it was told.
  std::chrono::nanoseconds attribute_timeout = std::chrono::seconds(1);
};

/// What all mounts share. The caller owns it and keeps it longer than the mounts.
struct Servers {
  Model& model;
  Faults& faults;
  Meter& meter;
  DeadlineQueue& queue;
};

class Mount : private NonCopyable {
 public:
  /// Mounts; the file system serves from here on. `client` is its place in the meter.
  /// Throws io when the mount point or the backing directory does not allow it.
  Mount(MountOptions options, Servers servers, std::size_t client);
  ~Mount();

  /// Takes the mount out of the directory tree. Files that are still open go on being served until
  /// destruction; after it they are dead.
  void unmount();

 private:
  friend struct Operations;  // the FUSE callbacks

  void serve(const std::stop_token& stop);
  void set_read_ahead() const;

  MountOptions options_;
  Servers servers_;
  std::size_t client_;
  InodeTable inodes_;
  std::unique_ptr<fuse_session, void (*)(fuse_session*)> session_;
  bool mounted_ = false;
  HelperThread thread_;  // last: it uses all of the above
};

}  // namespace forebay::pfs
