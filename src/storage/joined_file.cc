#include "storage/joined_file.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "forebay/error.hpp"

namespace forebay {
namespace {

// A multiple of pages and of the usual pieces, which are cut at multiples of their size.
constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;
constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;

}  // namespace

JoinedFile::JoinedFile(std::string name, std::vector<std::shared_ptr<const File>> parts)
    : name_(std::move(name)), parts_(std::move(parts)), begins_{0} {
  for (const auto& part : parts_) {
    const std::uint64_t size = part->size();
    if (size > kMost - kAlignment - begins_.back()) {
      throw Error(ErrorKind::usage, "the files are too large together", "name fewer of them",
                  {.file = part->path()});
    }
    begins_.push_back((begins_.back() + size + kAlignment - 1) / kAlignment * kAlignment);
  }
}

FilePlace JoinedFile::place(std::uint64_t offset) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, offset);
  const auto part = static_cast<std::size_t>(after - begins_.begin()) - 1;
  return {.file = parts_[part], .offset = offset - begins_[part]};
}

Stripes JoinedFile::stripes(std::uint64_t offset) const {
  const FilePlace at = place(offset);
  return at.file->stripes(at.offset);
}

void JoinedFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const FilePlace at = place(offset);
  at.file->read(at.offset, out);
}

void JoinedFile::check() const {
  for (const auto& part : parts_) part->check();
}

FileFingerprint JoinedFile::fingerprint() const {
  FileFingerprint all;
  for (const auto& part : parts_) {
    const FileFingerprint one = part->fingerprint();
    all.size += one.size;
    all.device = one.device;
    all.modified_ns = std::max(all.modified_ns, one.modified_ns);
  }
  return all;
}

FileCounters JoinedFile::counters() const {
  FileCounters all;
  for (const auto& part : parts_) {
    const FileCounters one = part->counters();
    all.requests += one.requests;
    all.bytes += one.bytes;
  }
  return all;
}

void JoinedFile::read_ahead(bool forward) const noexcept {
  for (const auto& part : parts_) part->read_ahead(forward);
}

bool JoinedFile::has_descriptors() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->has_descriptors(); });
}

bool JoinedFile::is_mapped() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->is_mapped(); });
}

FilePlace resolve(const std::shared_ptr<const File>& file, std::uint64_t offset) {
  FilePlace at{.file = file, .offset = offset};
  while (true) {
    FilePlace inner = at.file->place(at.offset);
    if (!inner.file) return at;
    at = std::move(inner);
  }
}

}  // namespace forebay
