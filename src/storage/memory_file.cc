#include "storage/memory_file.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include "core/copy_values.hpp"
#include "storage/file_error.hpp"

namespace forebay {

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

std::shared_ptr<const File> memory_file(std::string name, std::span<const std::byte> bytes) {
  return std::make_shared<MemoryFile>(
      std::move(name), std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
}

}  // namespace forebay
