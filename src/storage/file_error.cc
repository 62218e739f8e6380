#include "storage/file_error.hpp"
#include "core/limits.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace forebay {
namespace {

struct OpenFault {
  ErrorKind kind;
  const char* happened;
  const char* remedy;
};

OpenFault explain_open(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {ErrorKind::not_found, "no such file",
              "check the path, and that this node mounts the file system it is on"};
    case EACCES:
    case EPERM:
      return {ErrorKind::io, "permission denied",
              "give this user read permission on the file and search permission on its folders"};
    case EISDIR:
      return {ErrorKind::usage, "this is a directory, not a file", "name a file inside it"};
    case EMFILE:
    case ENFILE:
      return {ErrorKind::io, "too many files are open", ""};
    case ENAMETOOLONG:
    case ELOOP:
      return {ErrorKind::usage, "the path cannot be followed", "check its length and its links"};
    default:
      return {ErrorKind::io, "the file cannot be opened", "check the device and the file system"};
  }
}

struct FileSystem {
  std::uint32_t magic;
  const char* name;
};

// The numbers of statfs(2) and linux/magic.h, and of file systems outside the kernel tree.
constexpr FileSystem kFileSystems[] = {
    {0xEF53, "ext4"},       {0x58465342, "xfs"},      {0x9123683E, "btrfs"},
    {0x01021994, "tmpfs"},  {0x794C7630, "overlay"},  {0x6969, "nfs"},
    {0x65735546, "fuse"},   {0x0BD00BD0, "lustre"},   {0x47504653, "gpfs"},
    {0x19830326, "beegfs"}, {0x00C36400, "ceph"},     {0xFF534D42, "cifs"},
    {0xFE534D42, "smb2"},   {0x01021997, "9p"},       {0x01161970, "gfs2"},
    {0x7461636F, "ocfs2"},  {0x20030528, "orangefs"}, {0x2FC12FC1, "zfs"},
    {0xF2F52010, "f2fs"},   {0x73717368, "squashfs"}, {0x9660, "iso9660"},
    {0x62656572, "sysfs"},  {0x9FA0, "proc"},         {0x4D44, "vfat"},
};

constexpr std::string_view kLocal[] = {"ext4", "xfs",     "btrfs",    "f2fs",    "zfs",
                                       "vfat", "overlay", "squashfs", "iso9660", "tmpfs"};

}  // namespace

std::string errno_text(int error) { return std::generic_category().message(error); }

Error open_error(const std::string& path, int error) {
  const OpenFault fault = explain_open(error);
  if (path.empty()) return {fault.kind, "the path of a file is empty", "name a file"};
  return {fault.kind, fmt::format("{} ({})", fault.happened, errno_text(error)),
          remedy_for(error, fault.remedy), Where{.file = path}};
}

Error read_error(const std::string& path, std::uint64_t offset, int error) {
  return {ErrorKind::io, fmt::format("the read failed ({})", errno_text(error)),
          remedy_for(error, "check the device and the file system (the kernel's log says more)"),
          Where{.file = path, .offset = offset}};
}

Error end_of_file_error(const std::string& path, std::uint64_t offset, std::uint64_t wanted,
                        std::uint64_t end) {
  return {ErrorKind::io,
          fmt::format("{} bytes were wanted here, but the file ends at {}", wanted, end),
          "the file was cut or is incomplete: copy it again from its source",
          Where{.file = path, .offset = offset}};
}

Error fault_error(const std::string& path, std::uint64_t offset) {
  return {ErrorKind::io, "the mapped bytes could not be read (SIGBUS)",
          "the file was cut while it was open, or its device failed: restore it and open it again",
          Where{.file = path, .offset = offset}};
}

std::string sign_of_writing(const File& file, const FileFingerprint& was,
                            const FileFingerprint& is) {
  if (is.device != was.device || is.inode != was.inode || is.born_ns != was.born_ns) {
    return "another file has its name";
  }
  if (is.size != was.size) return fmt::format("it has {} bytes instead of {}", is.size, was.size);
  if (is.modified_ns != was.modified_ns) return "the time of its last write (mtime) is another";
  if (is.changed_ns == was.changed_ns || is.rights != was.rights) return {};
  // Whoever writes may set the time of the last write back; or the file was given another name.
  struct stat named {};
  const bool renamed = file.descriptor() >= 0 &&
                       (::stat(file.path().c_str(), &named) != 0 || named.st_ino != is.inode);
  return renamed ? "" : "the time of its last change (ctime) is another";
}

Error rewritten_error(const std::string& path, const std::string& sign) {
  return {ErrorKind::changed, fmt::format("the data set was changed while it was open: {}", sign),
          "start again once nothing writes to it", Where{.file = path}};
}

Error no_answer_error(const std::string& path, std::optional<std::uint64_t> offset,
                      std::chrono::milliseconds waited) {
  const auto seconds = static_cast<double>(waited.count()) / 1000;
  return {ErrorKind::io, fmt::format("no answer from the file system for {} s", seconds),
          "check the server and the network (the kernel's log says more), or allow more time",
          Where{.file = path, .offset = offset}};
}

Error stopped_error(const std::string& path) {
  return {ErrorKind::cancelled, "reading was stopped before it was complete", "",
          Where{.file = path}};
}

Error abandoned_error(const std::string& path) {
  return {ErrorKind::io, "an earlier read got no answer from the file system",
          "open the data set again once its server answers", Where{.file = path}};
}

std::string file_system_name(int fd) {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return "unknown";
  const auto magic = static_cast<std::uint32_t>(status.f_type);
  for (const FileSystem& known : kFileSystems) {
    if (known.magic == magic) return known.name;
  }
  return fmt::format("unknown (type 0x{:x})", magic);
}

std::string file_system_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) throw open_error(path, errno);
  const std::string name = file_system_name(fd);
  ::close(fd);
  return name;
}

bool is_local_file_system(const std::string& name) {
  return std::ranges::find(kLocal, name) != std::end(kLocal);
}

}  // namespace forebay
