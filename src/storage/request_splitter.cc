#include "storage/request_splitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "storage/file_error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kMaxOffset = std::numeric_limits<std::int64_t>::max();

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value - value % unit; }

}  // namespace

RequestSplitter::RequestSplitter(std::span<const ReadRequest> requests, std::uint64_t piece_bytes,
                                 DirectRules rules, const File* striped)
    : requests_(requests),
      piece_bytes_(std::clamp<std::uint64_t>(piece_bytes, 1, kLargestPiece)),
      rules_(rules),
      striped_(striped != nullptr && striped->stripes(0).bytes > 0 ? striped : nullptr) {
  skip_empty();
}

ReadPiece RequestSplitter::next() {
  const ReadRequest& request = requests_[current_];
  ReadPiece piece;
  piece.request = current_;
  piece.offset = request.offset + taken_;
  const auto rest = request.into.subspan(taken_);
  std::uint64_t end = end_of_piece(piece.offset, piece.offset + rest.size());
  if (may_be_direct(piece.offset, rest.data())) {
    const std::uint64_t aligned_end = round_down(end, rules_.offset_alignment);
    piece.direct = aligned_end > piece.offset;
    if (piece.direct) end = aligned_end;
  }
  piece.into = rest.first(end - piece.offset);
  taken_ += piece.into.size();
  if (taken_ == request.into.size()) {
    ++current_;
    taken_ = 0;
    skip_empty();
  }
  return piece;
}

void RequestSplitter::skip_empty() {
  while (current_ < requests_.size() && requests_[current_].into.empty()) ++current_;
}

std::uint64_t RequestSplitter::end_of_piece(std::uint64_t begin, std::uint64_t end) const {
  end = std::min(end, next_cut(begin));
  if (rules_.offset_alignment == 0 || begin % rules_.offset_alignment == 0) return end;
  // An unaligned head stops where direct reads can start.
  return std::min(end, round_down(begin, rules_.offset_alignment) + rules_.offset_alignment);
}

/// In files that are joined, stripes are counted from where each of them begins.
std::uint64_t RequestSplitter::next_cut(std::uint64_t offset) const {
  if (striped_ == nullptr) return round_down(offset, piece_bytes_) + piece_bytes_;
  const std::uint64_t own = striped_->place(offset).offset;
  const std::uint64_t stripe = striped_->stripes(offset).bytes;
  const std::uint64_t piece = piece_bytes_ - own % piece_bytes_;
  return offset + (stripe == 0 ? piece : std::min(piece, stripe - own % stripe));
}

bool RequestSplitter::may_be_direct(std::uint64_t offset, const std::byte* address) const {
  return rules_.offset_alignment != 0 && offset % rules_.offset_alignment == 0 &&
         reinterpret_cast<std::uintptr_t>(address) % rules_.memory_alignment == 0;
}

void require_possible(std::span<const ReadRequest> requests, const File& file) {
  for (const ReadRequest& request : requests) {
    const std::uint64_t count = request.into.size();
    if (count <= kMaxOffset && request.offset <= kMaxOffset - count) continue;
    throw end_of_file_error(file.path(), request.offset, count, file.size());
  }
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKib = 1024;
  constexpr std::uint64_t kMib = kKib * kKib;
  if (bytes >= kMib && bytes % kMib == 0) return fmt::format("{} MiB", bytes / kMib);
  if (bytes >= kKib && bytes % kKib == 0) return fmt::format("{} KiB", bytes / kKib);
  return fmt::format("{} bytes", bytes);
}

}  // namespace forebay
