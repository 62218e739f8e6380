// The FUSE callbacks of a Mount.
#pragma once

#include <fuse3/fuse_lowlevel.h>

#include "pfs/mount.hpp"

namespace forebay::pfs {

/// All callbacks find their Mount in the session's user data.
struct Operations {
  static fuse_lowlevel_ops table();

 private:
  static Mount& mount(fuse_req_t request);
  /// The same, for all but reads: counted and free of charge.
  static Mount& metadata(fuse_req_t request);
  static double timeout(const Mount& mount);

  static void init(void* user_data, fuse_conn_info* connection);
  static void lookup(fuse_req_t request, fuse_ino_t parent, const char* name);
  static void forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t times);
  static void getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
  static void readlink(fuse_req_t request, fuse_ino_t inode);
  static void open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
  static void read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
                   fuse_file_info* file);
  static void release(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
  static void opendir(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
  static void readdir(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
                      fuse_file_info* file);
  static void releasedir(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file);
};

}  // namespace forebay::pfs
