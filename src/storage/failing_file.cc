#include "storage/failing_file.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/file_error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kPageSize = 4096;

bool covers(std::uint64_t offset, std::uint64_t count, std::uint64_t byte) {
  return byte >= offset && byte - offset < count;
}

}  // namespace

FailingFile::FailingFile(std::shared_ptr<const File> inner) : inner_(std::move(inner)) {
  const auto bytes = inner_->map();
  mapped_.assign(bytes.begin(), bytes.end());
}

void FailingFile::cut_to(std::uint64_t size) {
  cut_size_ = size;
  // As in the kernel, the page that holds the cut stays readable; the next one faults.
  const std::uint64_t next_page = (size + kPageSize - 1) / kPageSize * kPageSize;
  if (next_page < mapped_.size()) fault_at_ = next_page;
  zero_map_from(size);
}

void FailingFile::fault_map_at(std::uint64_t offset) {
  fault_at_ = offset;
  zero_map_from(offset / kPageSize * kPageSize);
}

std::uint64_t FailingFile::size() const {
  return std::min<std::uint64_t>(inner_->size(), cut_size_);
}

void FailingFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (covers(offset, out.size(), fail_at_)) throw read_error(path(), fail_at_, EIO);
  const std::uint64_t end = std::min<std::uint64_t>(end_at_, size());
  if (covers(offset, out.size(), end) || offset > end) {
    throw end_of_file_error(path(), offset, out.size(), end);
  }
  inner_->read(offset, out);
}

void FailingFile::check() const {
  inner_->check();
  if (fault_at_ != kNever) throw fault_error(path(), fault_at_);
}

FileFingerprint FailingFile::fingerprint() const {
  FileFingerprint fingerprint = inner_->fingerprint();
  fingerprint.size = size();
  return fingerprint;
}

void FailingFile::zero_map_from(std::uint64_t offset) {
  if (offset >= mapped_.size()) return;
  std::ranges::fill(std::span(mapped_).subspan(offset), std::byte{0});
}

}  // namespace forebay
