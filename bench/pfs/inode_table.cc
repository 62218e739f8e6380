#include "pfs/inode_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

}  // namespace forebay::pfs
