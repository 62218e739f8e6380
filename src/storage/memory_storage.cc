// What "mem://..." names: bytes that this process was given, and files that are read into memory
// whole, but for the holes of sparse ones.
//
// The names belong to the process, because a path is all that a data set is named by. A file is
// shared by all that have it open (ranks as threads among them), as long as it stays the same on
// its file system: then it is read once.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/copy_values.hpp"
#include "core/memory_limit.hpp"
#include "core/mix.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "storage/file_error.hpp"
#include "storage/pread_file.hpp"

namespace forebay {
namespace {

/// Memory of zeros, of which only what is written takes any: files may have holes that are larger
/// than the memory of a machine.
class Memory : private NonCopyable {
 public:
  explicit Memory(std::uint64_t size) : size_(size) {
    if (size == 0) return;
    address_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address_ != MAP_FAILED) return;
    throw Error(ErrorKind::usage, fmt::format("there is no room for {} bytes in memory", size),
                "leave out the 'mem://', or raise 'ulimit -v'");
  }
  ~Memory() {
    if (size_ > 0) ::munmap(address_, size_);
  }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(address_), size_}; }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(address_), size_};
  }

  /// A stretch that is no hole.
  struct Data {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  std::vector<Data> data;  ///< where the bytes are that are not all zero

 private:
  std::uint64_t size_;
  void* address_ = nullptr;
};

using MemoryBytes = std::shared_ptr<const Memory>;

/// Bytes in memory as a File.
class MemoryFile final : public File {
 public:
  MemoryFile(std::string name, MemoryBytes bytes);

  const std::string& path() const override { return name_; }
  std::uint64_t size() const override { return bytes_->bytes().size(); }
  std::span<const std::byte> map() const override { return bytes_->bytes(); }
  void check() const override {}
  FileCounters counters() const override { return {}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  /// Memory has no inode: the content itself tells two files apart. Worked out once.
  FileFingerprint fingerprint() const override;
  bool is_local() const override { return true; }

 private:
  std::string name_;
  MemoryBytes bytes_;
  mutable std::once_flag hashed_;
  mutable std::uint64_t hash_ = 0;
};

MemoryFile::MemoryFile(std::string name, MemoryBytes bytes)
    : name_(std::move(name)), bytes_(std::move(bytes)) {}

void MemoryFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.size() > size() || offset > size() - out.size()) {
    throw end_of_file_error(name_, offset, out.size(), size());
  }
  copy_values(map().subspan(offset, out.size()), out);
}

FileFingerprint MemoryFile::fingerprint() const {
  std::call_once(hashed_, [this] {
    for (const Memory::Data& data : bytes_->data) {
      const auto bytes = map().subspan(data.offset, data.length);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const std::uint64_t hash = std::hash<std::string_view>{}(text);
      hash_ = hash_ == 0 ? hash : mix(hash_ ^ hash ^ data.offset);
    }
  });
  FileFingerprint fingerprint;
  fingerprint.size = size();
  fingerprint.inode = hash_;
  return fingerprint;
}

struct LoadedFile {
  FileFingerprint fingerprint;
  std::weak_ptr<const Memory> bytes;
};

struct MemoryNames {
  std::mutex mutex;
  std::map<std::string, MemoryBytes> given;
  std::map<std::string, LoadedFile> loaded;  // by path
};

MemoryNames& memory_names() {
  // Never destroyed: files may be opened until after the end of main.
  static auto* const names = new MemoryNames;
  return *names;
}

bool is_path(const std::string& rest) { return rest.starts_with('/'); }

/// Where `file` is not a hole, as far as its file system tells.
std::vector<Memory::Data> data_of(const PreadFile& file) {
  const std::uint64_t size = file.size();
  std::vector<Memory::Data> data;
  for (std::uint64_t at = 0; at < size;) {
    const off_t begin = ::lseek(file.descriptor(), static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // nothing but a hole
    const off_t end = begin < 0 ? begin : ::lseek(file.descriptor(), begin, SEEK_HOLE);
    if (end <= begin) return {{.offset = 0, .length = size}};
    const std::uint64_t until = std::min(size, static_cast<std::uint64_t>(end));
    data.push_back({static_cast<std::uint64_t>(begin), until - static_cast<std::uint64_t>(begin)});
    at = until;
  }
  return data;
}

MemoryBytes load(const PreadFile& file) {
  const std::vector<Memory::Data> data = data_of(file);
  std::uint64_t used = 0;
  for (const Memory::Data& one : data) used += one.length;
  const MemoryLimit limit = memory_limit();
  if (used > limit.limit_bytes) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes do not fit into the memory of this node: {} bytes ({})", used,
                            limit.limit_bytes, limit.source),
                "leave out the 'mem://'", {.file = file.path()});
  }
  auto memory = std::make_shared<Memory>(file.size());
  for (const Memory::Data& one : data) {
    file.read(one.offset, memory->bytes().subspan(one.offset, one.length));
  }
  memory->data = data;
  return memory;
}

MemoryBytes copy_of(std::span<const std::byte> bytes) {
  auto memory = std::make_shared<Memory>(bytes.size());
  copy_values(bytes, memory->bytes());
  memory->data = {{.offset = 0, .length = bytes.size()}};
  return memory;
}

/// Under the lock also while it reads: whoever wants the same file waits for it.
MemoryBytes loaded_once(const std::string& path) {
  const PreadFile file(path);
  const FileFingerprint now = file.fingerprint();
  MemoryNames& names = memory_names();
  const std::lock_guard lock(names.mutex);
  std::erase_if(names.loaded, [](const auto& one) { return one.second.bytes.expired(); });
  const auto found = names.loaded.find(path);
  if (found != names.loaded.end() && found->second.fingerprint == now) {
    if (auto bytes = found->second.bytes.lock()) return bytes;
  }
  auto bytes = load(file);
  names.loaded[path] = {.fingerprint = now, .bytes = bytes};
  return bytes;
}

MemoryBytes given(const std::string& name) {
  MemoryNames& names = memory_names();
  const std::lock_guard lock(names.mutex);
  const auto found = names.given.find(name);
  return found == names.given.end() ? nullptr : found->second;
}

std::shared_ptr<const File> open_memory(const std::string& rest, Engine) {
  auto bytes = is_path(rest) ? loaded_once(rest) : given(rest);
  if (!bytes) {
    throw Error(ErrorKind::not_found, "this process has no bytes of that name in memory",
                "give them to keep_in_memory(), or name a file by its absolute path: mem:///PATH",
                {.file = "mem://" + rest});
  }
  return std::make_shared<MemoryFile>("mem://" + rest, std::move(bytes));
}

bool memory_has(const std::string& rest) {
  std::error_code ignored;
  return is_path(rest) ? std::filesystem::is_regular_file(rest, ignored) : given(rest) != nullptr;
}

}  // namespace

std::shared_ptr<const File> memory_file(std::string name, std::span<const std::byte> bytes) {
  return std::make_shared<MemoryFile>(std::move(name), copy_of(bytes));
}

Storage memory_storage() {
  return {.scheme = "mem",
          .description = "bytes in memory",
          .open = open_memory,
          .has = memory_has,
          .maps = true};
}

void keep_in_memory(const std::string& name, std::span<const std::byte> bytes) {
  if (name.empty() || is_path(name)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no name for bytes in memory", name),
                "choose one that does not begin with '/'");
  }
  auto copy = copy_of(bytes);
  MemoryNames& names = memory_names();
  const std::lock_guard lock(names.mutex);
  names.given[name] = std::move(copy);
}

void forget_memory(const std::string& name) {
  MemoryNames& names = memory_names();
  const std::lock_guard lock(names.mutex);
  names.given.erase(name);
}

}  // namespace forebay
