// The pread engine: a file descriptor, and reads of exactly the bytes that were asked for.
//
// No lock is taken and no position is shared, so any number of threads may read at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/non_copyable.hpp"
#include "forebay/storage.hpp"
#include "storage/stripes.hpp"

namespace forebay {

/// An open file descriptor, closed on destruction.
class FileDescriptor : private NonCopyable {
 public:
  /// Opens `path` read-only. Throws not_found, usage (not a file), io (permission, device).
  explicit FileDescriptor(const std::string& path);
  ~FileDescriptor();

  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

class PreadFile : public File {
 public:
  explicit PreadFile(std::string path);

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::span<const std::byte> map() const override { return {}; }
  void check() const override {}
  FileFingerprint fingerprint() const override;
  FileCounters counters() const override;

  int descriptor() const override { return descriptor_.get(); }
  /// As far as its file system tells.
  bool is_local() const override;
  /// Off at first: read-ahead leaves marks on pages of the page cache, and whoever reads a marked
  /// page later, at whatever place and with whatever advice, sets off the next one of up to
  /// megabytes.
  void read_ahead(bool forward) const noexcept override;
  Stripes stripes(std::uint64_t offset) const override;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  std::int64_t born_ns_;
  mutable std::once_flag asked_for_stripes_;
  mutable std::vector<StripedRange> striped_;
  mutable std::atomic<std::uint64_t> requests_ = 0;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace forebay
