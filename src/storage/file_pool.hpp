// More files than a process may have open: only those that were used last are.
//
//   PooledFile --+
//   PooledFile --+--> FilePool   |open |open |open |     the one that was not used for longest
//   PooledFile --+               most recent ... oldest  is closed for the next
//
// A file that is opened again must be the one that it was: another one under its name is the error
// "changed".
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "forebay/storage.hpp"

namespace forebay {

/// Thread-safe.
class FilePool {
 public:
  /// Keeps at most `most` files open, beside those that somebody uses.
  explicit FilePool(std::size_t most) : most_(most) {}

  /// The file at `path`, open for explicit reads; it stays so as long as the result lives.
  /// Throws as open_file.
  std::shared_ptr<const File> open(const std::string& path);

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const File>> open_;  // most recent first
};

/// A file that its pool opens when it is needed; never mapped. Safe from any thread.
class PooledFile final : public File {
 public:
  /// Opens the file once, to know it. Throws as open_file.
  PooledFile(std::string path, std::shared_ptr<FilePool> pool);

  /// The file itself. Throws as open_file, and changed when it is another one than it was.
  std::shared_ptr<const File> open() const;

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return open()->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    open()->read(offset, out);
  }
  std::span<const std::byte> map() const override { return {}; }
  void check() const override {}
  FileFingerprint fingerprint() const override { return open()->fingerprint(); }
  /// Not kept: a file that is closed forgets what was read of it.
  FileCounters counters() const override { return {}; }
  FilePlace place(std::uint64_t offset) const override { return {open(), offset}; }
  bool has_descriptors() const override { return has_descriptor_; }

 private:
  std::string path_;
  std::shared_ptr<FilePool> pool_;
  FileFingerprint at_first_;
  bool has_descriptor_ = false;
};

}  // namespace forebay
