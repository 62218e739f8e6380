// A File that fails on demand, for tests: it wraps another and injects the faults of real storage.
//
//   fail_reads_at(o)   a read that covers byte o throws, as a device that answers EIO would
//   end_reads_at(o)    a read that covers byte o throws as at the end of the file, though size()
//                      still promises the bytes (a short read)
//   cut_to(n)          the file shrinks: size() is n, reads past n throw, map() faults past it
//   fault_map_at(o)    map() reads as zeros from the page of o on, and check() throws
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

/// Thread-safe, except that cut_to() and fault_map_at() rewrite the bytes of map(): call them while
/// no other thread looks at these. Faults stay until the object goes.
class FailingFile final : public File {
 public:
  explicit FailingFile(std::shared_ptr<const File> inner);

  void fail_reads_at(std::uint64_t offset) { fail_at_ = offset; }
  void end_reads_at(std::uint64_t offset) { end_at_ = offset; }
  void cut_to(std::uint64_t size);
  void fault_map_at(std::uint64_t offset);

  const std::string& path() const override { return inner_->path(); }
  std::uint64_t size() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::span<const std::byte> map() const override { return mapped_; }
  void check() const override;
  FileFingerprint fingerprint() const override;
  FileCounters counters() const override { return inner_->counters(); }
  bool is_local() const override { return inner_->is_local(); }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  void zero_map_from(std::uint64_t offset);

  std::shared_ptr<const File> inner_;
  std::vector<std::byte> mapped_;
  std::atomic<std::uint64_t> fail_at_ = kNever;
  std::atomic<std::uint64_t> end_at_ = kNever;
  std::atomic<std::uint64_t> cut_size_ = kNever;
  std::atomic<std::uint64_t> fault_at_ = kNever;
};

}  // namespace forebay
