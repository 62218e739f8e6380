#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/storage.hpp"
#include "storage/file_error.hpp"

namespace forebay {
namespace {

class MemoryFile final : public File {
 public:
  MemoryFile(std::string name, std::span<const std::byte> bytes)
      : name_(std::move(name)), bytes_(bytes.begin(), bytes.end()) {}

  const std::string& path() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  std::span<const std::byte> map() const override { return bytes_; }
  void check() const override {}
  FileCounters counters() const override { return {}; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.size() > bytes_.size() || offset > bytes_.size() - out.size()) {
      throw end_of_file_error(name_, offset, out.size(), bytes_.size());
    }
    std::ranges::copy(std::span(bytes_).subspan(offset, out.size()), out.begin());
  }

  // Memory has no inode: the content itself tells two files apart.
  FileFingerprint fingerprint() const override {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    FileFingerprint fingerprint;
    fingerprint.size = bytes_.size();
    fingerprint.inode = std::hash<std::string_view>{}(text);
    return fingerprint;
  }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::shared_ptr<const File> memory_file(std::string name, std::span<const std::byte> bytes) {
  return std::make_shared<MemoryFile>(std::move(name), bytes);
}

}  // namespace forebay
