// How bytes get off a file: one small interface, behind which engines differ.
//
//   pread   explicit reads of exactly the bytes that were asked for
//   mmap    the file is mapped once, map() gives the bytes in place; a fault inside the mapping
//           (file cut, device gone) becomes an Error from check() instead of killing the process
//   uring   as pread; many reads at once go through io_uring, where the system has it
//   memory  bytes in memory (tests, and data that never had a file)
//
// All methods are local (no rank waits for another) and safe to call from many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace forebay {

enum class Engine : std::uint8_t { mmap, pread, uring };

/// What a file moved so far. Mapped bytes are counted by their readers, not here.
struct FileCounters {
  std::uint64_t requests = 0;  ///< read calls that reached the operating system
  std::uint64_t bytes = 0;     ///< bytes those calls returned
};

/// Identity of a file's content as far as the file system can tell without reading it.
struct FileFingerprint {
  std::uint64_t size = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;  ///< tells files apart that have had one inode; 0: not known
  std::int64_t modified_ns = 0;
  /// Also of names and rights, and no program can set it back: not compared.
  std::int64_t changed_ns = 0;
  std::uint64_t rights = 0;  ///< owner, permissions and number of names in one number: not compared
  bool operator==(const FileFingerprint& other) const {
    return size == other.size && device == other.device && inode == other.inode &&
           born_ns == other.born_ns && modified_ns == other.modified_ns;
  }
};

/// How bytes are dealt to the servers of a parallel file system: in stripes of so many, counted
/// from the start of their file. Zeros: not known, or not at all.
struct Stripes {
  std::uint64_t bytes = 0;
  std::uint32_t servers = 0;
  bool operator==(const Stripes&) const = default;
};

class File;

/// A file of its own, and an offset in it.
struct FilePlace {
  std::shared_ptr<const File> file;
  std::uint64_t offset = 0;
};

class File {
 public:
  virtual ~File() = default;
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  virtual const std::string& path() const = 0;
  /// Size in bytes, asked anew each time.
  virtual std::uint64_t size() const = 0;
  /// Fills `out` whole from `offset`. Throws io when the bytes are not all there.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// The bytes from 0 to the size at open, in place; empty where the engine does not map.
  /// Lives as long as this object. After bytes were used, call check() before trusting them.
  virtual std::span<const std::byte> map() const = 0;
  /// Throws io when an access inside map() has faulted since open. Cheap: one atomic load.
  virtual void check() const = 0;
  virtual FileFingerprint fingerprint() const = 0;
  virtual FileCounters counters() const = 0;

  // What engines may use beyond that. The defaults are right for any storage.

  /// For system calls that this class does not make, open as long as this object; -1: there is
  /// none.
  virtual int descriptor() const { return -1; }
  /// Whether the bytes are on a device of this node, or in its memory.
  virtual bool is_local() const { return false; }
  /// Advice: whether reads to come go forward, so that more may be read than they ask for.
  virtual void read_ahead(bool /*forward*/) const noexcept {}
  /// Of the bytes around `offset`: reads that cross no stripe keep to one server each.
  virtual Stripes stripes(std::uint64_t /*offset*/) const { return {}; }
  /// Whose bytes an offset means, where this file stands for others; no file: its own.
  virtual FilePlace place(std::uint64_t offset) const {
    return {.file = nullptr, .offset = offset};
  }
  /// Whether the file at every place has a descriptor.
  virtual bool has_descriptors() const { return descriptor() >= 0; }
  /// Whether the file at every place is mapped.
  virtual bool is_mapped() const { return !map().empty() || size() == 0; }
};

/// A kind of storage, a row of a table: what opens "SCHEME://NAME", for all that takes a path.
struct Storage {
  std::string scheme;       ///< a small letter, then small letters, digits, '+', '-', '.'
  std::string description;  ///< "bytes in memory": for messages
  /// `name` is what stands behind "://", as it stands there. Safe to call from many threads. Throws
  /// not_found, io, usage, unsupported.
  std::function<std::shared_ptr<const File>(const std::string& name, Engine engine)> open;
  /// Whether open() would find a file; empty: by opening it.
  std::function<bool(const std::string& name)> has = {};
  /// Its files can be mapped (Engine::mmap).
  bool maps = false;
  /// Its code may never return: so it is called by threads that can be left behind.
  bool may_hang = false;
};

/// The kinds of storage that this process has: those of Forebay, then what was added. Thread-safe.
std::vector<Storage> storages();
/// Adds one, until the process ends. Throws usage for a scheme that is none, or taken. Thread-safe.
void add_storage(Storage storage);

/// Opens `path` read-only, taking no lock. A path may be a URL:
///
///   file://PATH    the file PATH, as without "file://"
///   mem://NAME     bytes that keep_in_memory() was given in this process
///   mem:///PATH    the file /PATH, read into memory whole; once, while anybody has it open
///   SCHEME://NAME  what the Storage or the plug-in for SCHEME opens (docs/storage.md)
///
/// Nothing in a URL is escaped. A file whose name looks like a URL is called "./NAME".
/// The mmap engine falls back to nothing: where a file system refuses to map, the Error names the
/// call and the file system and advises `--engine pread`.
/// Throws not_found (also for a scheme that nobody serves: the message lists those that are),
/// io (permission and device), usage (a directory, more than fits into memory), unsupported (cannot
/// map; the files of plug-ins never can).
std::shared_ptr<const File> open_file(const std::string& path, Engine engine);

/// A File over bytes that the caller provides (copied).
std::shared_ptr<const File> memory_file(std::string name, std::span<const std::byte> bytes);

/// Makes a copy of `bytes` what "mem://NAME" opens in this process, from now until forget_memory()
/// or another call for that name. Files that are open keep what they have. Local, thread-safe.
/// Throws usage for a name that is empty or begins with '/'.
void keep_in_memory(const std::string& name, std::span<const std::byte> bytes);
void forget_memory(const std::string& name);

/// Loads the storage plug-in (forebay/storage_plugin.h) in the shared object `path`, an absolute
/// path, and returns the scheme that it serves from now on, until the process ends. Loading one
/// twice does no harm. Those in the environment variable FOREBAY_STORAGE_PLUGINS (absolute paths,
/// separated by colons) are loaded by themselves when a scheme is not known yet.
///
/// Plug-ins belong to the process, as dlopen() and what they connect to do. Local, thread-safe; a
/// child of fork() keeps them.
/// Throws not_found, usage (not absolute, a scheme that is taken), unsupported (no plug-in, another
/// version, members missing), and what the plug-in's init reports.
std::string load_storage_plugin(const std::string& path);

}  // namespace forebay
