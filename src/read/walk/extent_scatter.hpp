// One root seeks for all (thesis of S. Pumma, section 5.2.1: direct I/O): it walks the tree over
// the samples of a whole window, and sends each root where its records lie, leaf by leaf. The
// others read with plain large requests and never look at a branch page.
//
//   root 0: walk_pieces --> encode --message--> root r: decode --> read
//
// The byte form: numbers of 7 bits a byte, lowest first, the top bit telling that more follow.
//
//   magic | window | pieces | piece ...
//   piece: first sample | samples | records of the first leaf before them | leaves | leaf ...
//   leaf:  page | records | runs | run ...
//   run:   slot, as the distance to the last one | page | pages
//
// Pages are differences to the page that would follow; signs are folded into the lowest bit.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "forebay/communicator.hpp"
#include "format/lmdb/database.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "read/window_plan.hpp"

namespace forebay {

/// A leaf of the tree, whole: also with the records that lie before or behind the piece.
struct LocatedLeaf {
  lmdb::PageNumber page = 0;
  std::uint32_t records = 0;
  std::uint64_t first_sample = 0;   ///< of its first record
  std::vector<lmdb::LeafRun> runs;  ///< of the records that lie outside of the leaf
  bool operator==(const LocatedLeaf&) const = default;

  lmdb::LeafLayout layout() const { return {page, records, runs}; }
};

/// Samples in a row, and the leaves that hold them.
struct LocatedPiece {
  std::uint64_t first_sample = 0;
  std::uint64_t count = 0;
  std::vector<LocatedLeaf> leaves;
  bool operator==(const LocatedPiece&) const = default;
};

/// What bounds every number in a message: those of the snapshot that this root has opened itself.
struct LocateLimits {
  std::uint64_t entries = 0;
  lmdb::PageNumber last_page = 0;
  std::uint32_t page_size = 0;

  static LocateLimits of(const lmdb::Database& database);
};

struct SampleRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const SampleRange&) const = default;
};

/// The samples behind `pieces`, each once although the data set may recur in them: ascending, and
/// joined where they meet.
std::vector<SampleRange> sample_ranges(const StridedOrder& order, std::span<const Piece> pieces);

/// Walks the tree over the samples of each run, which lie inside the data set. `cursor` is where
/// the last walk ended, or not valid. Reads branch and leaf pages, and no overflow pages: the
/// length of a run is what its value needs. Throws what Tree throws.
std::vector<LocatedPiece> walk_pieces(lmdb::Database& database, lmdb::Cursor& cursor,
                                      std::span<const SampleRange> runs);

/// Pure. decode(encode(x)) == x.
std::vector<std::byte> encode(std::uint64_t window, std::span<const LocatedPiece> pieces);

struct LocatedWindow {
  std::uint64_t window = 0;
  std::vector<LocatedPiece> pieces;
};

/// Believes nothing: allocates no more than a small multiple of the bytes, and returns only pieces
/// that are whole, inside the data set and inside the file. Throws communication. Pure.
LocatedWindow decode(std::span<const std::byte> bytes, const LocateLimits& limits);

/// Carries located pieces from the root that seeks to the others. Used by one thread a root.
class ExtentLink {
 public:
  /// `roots` carries these messages alone. A wait for one lasts at most `limit`.
  ExtentLink(std::shared_ptr<Communicator> roots, std::chrono::milliseconds limit)
      : roots_(std::move(roots)), limit_(limit) {}

  /// Returns at once.
  void send(int to, std::uint64_t window, std::span<const LocatedPiece> pieces);
  /// Tells all others that this root locates nothing any more. Returns at once.
  void leave();
  /// Whether receive() has met the farewell of the root that it waited for.
  bool sender_has_left() const { return sender_has_left_; }
  /// What `from` has located for this root in `window`; empty when `give_up` said so, or when
  /// `from` has left.
  /// Throws communication: past the limit, for another window, or for what decode() refuses.
  std::optional<std::vector<LocatedPiece>> receive(int from, std::uint64_t window,
                                                   const LocateLimits& limits,
                                                   const GiveUp& give_up);

 private:
  std::shared_ptr<Communicator> roots_;
  std::chrono::milliseconds limit_;
  bool sender_has_left_ = false;
};

}  // namespace forebay
