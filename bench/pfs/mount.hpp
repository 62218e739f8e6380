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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "core/placement.hpp"
#include "pfs/deadline_queue.hpp"
#include "pfs/faults.hpp"
#include "pfs/inode_table.hpp"
#include "pfs/meter.hpp"
#include "pfs/model.hpp"

struct fuse_session;

namespace forebay::pfs {

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

class Mount {
 public:
  /// Mounts; the file system serves from here on. `client` is its place in the meter.
  /// Throws io when the mount point or the backing directory does not allow it.
  Mount(MountOptions options, Servers servers, std::size_t client);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

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
