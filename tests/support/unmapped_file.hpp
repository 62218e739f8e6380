// Another file through explicit reads only, whatever it maps itself.
#pragma once

#include <memory>
#include <string>

#include "forebay/storage.hpp"

namespace forebay::test {

class UnmappedFile : public File {
 public:
  explicit UnmappedFile(std::shared_ptr<const File> file) : file_(std::move(file)) {}

  const std::string& path() const override { return file_->path(); }
  std::uint64_t size() const override { return file_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    file_->read(offset, out);
  }
  std::span<const std::byte> map() const override { return {}; }
  void check() const override { file_->check(); }
  FileFingerprint fingerprint() const override { return file_->fingerprint(); }
  FileCounters counters() const override { return file_->counters(); }

 private:
  std::shared_ptr<const File> file_;
};

}  // namespace forebay::test
