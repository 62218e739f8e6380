// Bytes in memory as a File.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

using MemoryBytes = std::shared_ptr<const std::vector<std::byte>>;

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

}  // namespace forebay
