// The inodes that a kernel knows of one mount, each with an open handle to the backing file.
//
// The kernel names inodes by numbers that we give out at lookup, and tells us when it has forgotten
// them. An O_PATH descriptor keeps the backing inode, so its number cannot be given to another file
// while somebody may ask for it: a file that is replaced in the backing directory gets a new entry.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace forebay::pfs {

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

}  // namespace forebay::pfs
