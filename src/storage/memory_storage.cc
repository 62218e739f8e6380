// What "mem://..." names: bytes that this process was given, and files that are read into memory
// whole.
//
// The names belong to the process, because a path is all that a data set is named by. A file is
// shared by all that have it open (ranks as threads among them), as long as it stays the same on
// its file system: then it is read once.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/copy_values.hpp"
#include "core/memory_limit.hpp"
#include "forebay/error.hpp"
#include "storage/file_error.hpp"
#include "storage/pread_file.hpp"

namespace forebay {
namespace {

using MemoryBytes = std::shared_ptr<const std::vector<std::byte>>;

/// Bytes in memory as a File.
class MemoryFile final : public File {
 public:
  MemoryFile(std::string name, MemoryBytes bytes);

  const std::string& path() const override { return name_; }
  std::uint64_t size() const override { return bytes_->size(); }
  std::span<const std::byte> map() const override { return *bytes_; }
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
  if (out.size() > bytes_->size() || offset > bytes_->size() - out.size()) {
    throw end_of_file_error(name_, offset, out.size(), bytes_->size());
  }
  copy_values(std::span(*bytes_).subspan(offset, out.size()), out);
}

FileFingerprint MemoryFile::fingerprint() const {
  std::call_once(hashed_, [this] {
    const std::string_view text(reinterpret_cast<const char*>(bytes_->data()), bytes_->size());
    hash_ = std::hash<std::string_view>{}(text);
  });
  FileFingerprint fingerprint;
  fingerprint.size = bytes_->size();
  fingerprint.inode = hash_;
  return fingerprint;
}

struct LoadedFile {
  FileFingerprint fingerprint;
  std::weak_ptr<const std::vector<std::byte>> bytes;
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

MemoryBytes load(const PreadFile& file) {
  const std::uint64_t size = file.size();
  const MemoryLimit limit = memory_limit();
  if (size > limit.limit_bytes) {
    throw Error(ErrorKind::usage,
                fmt::format("{} bytes do not fit into the memory of this node: {} bytes ({})", size,
                            limit.limit_bytes, limit.source),
                "leave out the 'mem://'", {.file = file.path()});
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  file.read(0, *bytes);
  return bytes;
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
  return std::make_shared<MemoryFile>(
      std::move(name), std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
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
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
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
