// Long requests become pieces that can be read side by side.
//
// Cuts fall on file offsets that are multiples of the piece size, whatever the request starts at:
// two requests that meet in the file are cut alike, and inner pieces cover whole pages. Where the
// file is known to lie in stripes on several servers, they fall on the ends of these as well.
//
//   request      |-----------------------------|
//   pieces       |----|--------|--------|------|
//   file     0        8        16       24
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "storage/bulk_reader.hpp"

namespace forebay {

/// One read of the operating system: part of request number `request`.
struct ReadPiece {
  std::size_t request = 0;
  std::uint64_t offset = 0;
  std::span<std::byte> into;
  /// May go past the page cache: see DirectRules.
  bool direct = false;
};

/// What O_DIRECT demands, in bytes; 0 = no reads of that kind. Unaligned ends of a request become
/// pieces of their own, so that its inside can be read directly.
struct DirectRules {
  std::uint64_t offset_alignment = 0;
  std::uint64_t memory_alignment = 0;
};

/// Hands out the pieces of `requests` in order. Views them; empty requests have no pieces.
class RequestSplitter {
 public:
  static constexpr std::uint64_t kLargestPiece = std::uint64_t{1} << 30;

  RequestSplitter() = default;
  /// `piece_bytes` is brought into 1..kLargestPiece.
  /// `striped`, if given, is the file that is read, and outlives this.
  RequestSplitter(std::span<const ReadRequest> requests, std::uint64_t piece_bytes,
                  DirectRules rules = {}, const File* striped = nullptr);

  bool empty() const { return current_ == requests_.size(); }
  /// Requires !empty().
  ReadPiece next();

 private:
  void skip_empty();
  std::uint64_t end_of_piece(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t next_cut(std::uint64_t offset) const;
  bool may_be_direct(std::uint64_t offset, const std::byte* address) const;

  std::span<const ReadRequest> requests_;
  std::uint64_t piece_bytes_ = kLargestPiece;
  DirectRules rules_;
  const File* striped_ = nullptr;
  std::size_t current_ = 0;
  std::uint64_t taken_ = 0;  // bytes of the current request that were handed out
};

/// Throws io when a request reaches past the largest offset that a file can have.
void require_possible(std::span<const ReadRequest> requests, const File& file);

/// "1 MiB", "4 KiB" or "1000 bytes", for descriptions.
std::string size_text(std::uint64_t bytes);

}  // namespace forebay
