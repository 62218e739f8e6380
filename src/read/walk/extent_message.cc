// The byte form of located pieces; see read/walk/extent_scatter.hpp.
#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <utility>

#include "forebay/error.hpp"
#include "read/walk/extent_scatter.hpp"

namespace forebay {
namespace {

using lmdb::LeafRun;
using lmdb::PageNumber;

constexpr std::uint64_t kMagic = 0x46455831;  // FEX1
// The fewest bytes that each takes, so that no count asks for more memory than the message has.
constexpr std::size_t kLeastPiece = 4;
constexpr std::size_t kLeastLeaf = 3;
constexpr std::size_t kLeastRun = 3;

class Writer {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  /// `page` against the one that was expected, and expects `next` from now on.
  void page(PageNumber page, std::uint64_t next) {
    const auto difference = static_cast<std::int64_t>(page - expected_);
    number((static_cast<std::uint64_t>(difference) << 1) ^
           static_cast<std::uint64_t>(difference >> 63));
    expected_ = next;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  PageNumber expected_ = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const LocateLimits& limits)
      : bytes_(bytes), limits_(limits) {}

  void require(bool holds, const char* what) const {
    if (holds) return;
    throw Error(
        ErrorKind::communication,
        fmt::format("a message about where records lie is damaged at byte {}: {}", at_, what),
        "this is a fault of Forebay or of the network: please report it");
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      require(at_ < bytes_.size(), "it ends in a number");
      const auto byte = static_cast<std::uint64_t>(bytes_[at_++]);
      require(shift < 63 || (shift == 63 && byte <= 1), "a number is too large");
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }

  /// A count of things that take at least `least` bytes each.
  std::uint64_t count(std::size_t least) {
    const std::uint64_t count = number();
    require(count <= (bytes_.size() - at_) / least, "it has more parts than bytes");
    return count;
  }

  /// A run of pages inside the file.
  PageNumber page() {
    const std::uint64_t folded = number();
    const PageNumber page = expected_ + ((folded >> 1) ^ (~(folded & 1) + 1));
    require(page >= lmdb::kFirstTreePage && page <= limits_.last_page,
            "a page is outside the file");
    return page;
  }
  void expect(PageNumber next) { expected_ = next; }

  bool at_end() const { return at_ == bytes_.size(); }
  const LocateLimits& limits() const { return limits_; }

 private:
  std::span<const std::byte> bytes_;
  LocateLimits limits_;
  std::size_t at_ = 0;
  PageNumber expected_ = 0;
};

void write(Writer& out, const LocatedLeaf& leaf) {
  out.page(leaf.page, leaf.page + 1);
  out.number(leaf.records);
  out.number(leaf.runs.size());
  std::uint32_t next_slot = 0;
  for (const LeafRun& run : leaf.runs) {
    out.number(run.slot - next_slot);
    next_slot = run.slot + 1U;
    out.page(run.page, run.page + run.pages);
    out.number(run.pages);
  }
}

void write(Writer& out, const LocatedPiece& piece) {
  out.number(piece.first_sample);
  out.number(piece.count);
  out.number(piece.leaves.empty() ? 0 : piece.first_sample - piece.leaves.front().first_sample);
  out.number(piece.leaves.size());
  for (const LocatedLeaf& leaf : piece.leaves) write(out, leaf);
}

LeafRun read_run(Reader& in, std::uint64_t next_slot, std::uint32_t records) {
  const std::uint64_t distance = in.number();
  in.require(distance < records && next_slot + distance < records, "a run is of no record");
  const PageNumber page = in.page();
  const std::uint64_t pages = in.number();
  in.require(pages >= 1 && pages <= in.limits().last_page - page + 1 &&
                 pages <= std::numeric_limits<std::uint32_t>::max(),
             "a run ends outside the file");
  in.expect(page + pages);
  return {.page = page,
          .pages = static_cast<std::uint32_t>(pages),
          .slot = static_cast<std::uint16_t>(next_slot + distance)};
}

LocatedLeaf read_leaf(Reader& in, std::uint64_t first_sample) {
  LocatedLeaf leaf{.page = in.page(), .records = 0, .first_sample = first_sample, .runs = {}};
  in.expect(leaf.page + 1);
  const std::uint64_t records = in.number();
  in.require(records >= 1 && records <= lmdb::max_nodes(in.limits().page_size),
             "a leaf cannot hold so many records");
  in.require(records <= in.limits().entries - first_sample, "a leaf ends behind the last sample");
  leaf.records = static_cast<std::uint32_t>(records);
  const std::uint64_t runs = in.count(kLeastRun);
  in.require(runs <= records, "a leaf has more runs than records");
  leaf.runs.reserve(runs);
  for (std::uint64_t i = 0; i < runs; ++i) {
    leaf.runs.push_back(
        read_run(in, leaf.runs.empty() ? 0 : leaf.runs.back().slot + 1U, leaf.records));
  }
  return leaf;
}

LocatedPiece read_piece(Reader& in) {
  LocatedPiece piece;
  piece.first_sample = in.number();
  piece.count = in.number();
  const std::uint64_t entries = in.limits().entries;
  in.require(
      piece.count >= 1 && piece.count <= entries && piece.first_sample <= entries - piece.count,
      "samples are outside the data set");
  const std::uint64_t before = in.number();
  in.require(before <= piece.first_sample, "a leaf begins before the first sample");
  const std::uint64_t leaves = in.count(kLeastLeaf);
  std::uint64_t next = piece.first_sample - before;
  const std::uint64_t end = piece.first_sample + piece.count;
  for (std::uint64_t i = 0; i < leaves; ++i) {
    in.require(next < end, "a leaf lies behind the samples");
    piece.leaves.push_back(read_leaf(in, next));
    next += piece.leaves.back().records;
    in.require(next > piece.first_sample, "a leaf lies before the samples");
  }
  in.require(next >= end, "leaves are missing");
  return piece;
}

}  // namespace

std::vector<std::byte> encode(std::uint64_t window, std::span<const LocatedPiece> pieces) {
  Writer out;
  out.number(kMagic);
  out.number(window);
  out.number(pieces.size());
  for (const LocatedPiece& piece : pieces) write(out, piece);
  return out.take();
}

LocatedWindow decode(std::span<const std::byte> bytes, const LocateLimits& limits) {
  Reader in(bytes, limits);
  in.require(in.number() == kMagic, "it does not begin as it should");
  LocatedWindow located{.window = in.number(), .pieces = {}};
  const std::uint64_t pieces = in.count(kLeastPiece);
  for (std::uint64_t i = 0; i < pieces; ++i) located.pieces.push_back(read_piece(in));
  in.require(in.at_end(), "it goes on behind its end");
  return located;
}

}  // namespace forebay
