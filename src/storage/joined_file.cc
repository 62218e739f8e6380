#include "storage/joined_file.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "forebay/error.hpp"
#include "storage/file_pool.hpp"

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

std::size_t JoinedFile::part_at(std::uint64_t offset) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end() - 1, offset);
  return static_cast<std::size_t>(after - begins_.begin()) - 1;
}

void JoinedFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t part = part_at(offset);
  parts_[part]->read(offset - begins_[part], out);
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

FilePlace resolve(const std::shared_ptr<const File>& file, std::uint64_t offset) {
  if (const auto* joined = dynamic_cast<const JoinedFile*>(file.get())) {
    const std::size_t part = joined->part_at(offset);
    return resolve(joined->parts()[part], offset - joined->begin(part));
  }
  if (const auto* pooled = dynamic_cast<const PooledFile*>(file.get())) {
    return {pooled->open(), offset};
  }
  return {file, offset};
}

}  // namespace forebay
