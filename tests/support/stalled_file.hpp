// A file that does not answer.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "forebay/storage.hpp"

namespace forebay::test {

/// A file whose reads of one byte wait until release().
class StalledFile final : public File {
 public:
  StalledFile(std::shared_ptr<const File> inner, std::uint64_t at)
      : inner_(std::move(inner)), at_(at) {}

  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::unique_lock lock(mutex_);
    if (at_ >= offset && at_ - offset < out.size()) {
      changed_.wait(lock, [this] { return released_; });
    }
    inner_->read(offset, out);
  }
  const std::string& path() const override { return inner_->path(); }
  std::uint64_t size() const override { return inner_->size(); }
  std::span<const std::byte> map() const override { return inner_->map(); }
  void check() const override {}
  FileFingerprint fingerprint() const override { return inner_->fingerprint(); }
  FileCounters counters() const override { return inner_->counters(); }

 private:
  std::shared_ptr<const File> inner_;
  std::uint64_t at_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool released_ = false;
};

}  // namespace forebay::test
