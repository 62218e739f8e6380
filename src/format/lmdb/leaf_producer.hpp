// Something that knows how the leaves of a tree lie, segment by segment.
//
//   known    vectors in memory, from a walk                    (known_leaves.hpp)
//   table    compressed, from a sidecar or a parallel scan      (provenance/leaf_table.hpp)
//   recipe   replayed from checkpoints of LMDB's allocator      (provenance/recipe_leaves.hpp)
//
// A segment is a run of whole leaves with some thousand records, small enough to be expanded on
// demand. The directory of all segments is small and always at hand:
//
//   segment 0           segment 1           segment 2      end
//   [leaf leaf ... leaf][leaf leaf ... leaf][leaf ... leaf]
//    ^ first sample, first leaf
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/non_copyable.hpp"
#include "format/lmdb/layout.hpp"

namespace forebay::lmdb {

// How the records of a tree lie in the file, leaf by leaf: what every way to locate produces.
//
//   leaf (page, n records)  -->  its records that are too large for a page  -->  overflow runs
//
// Leaves come in key order, runs in the order of their records in the leaf.

/// The overflow run of one record.
struct LeafRun {
  PageNumber page = 0;      ///< the first
  std::uint32_t pages = 0;  ///< how many
  std::uint16_t slot = 0;   ///< of the record in its leaf
  bool operator==(const LeafRun&) const = default;
};

/// One leaf. `runs` is valid until the producer moves on.
struct LeafLayout {
  PageNumber page = 0;
  std::uint32_t records = 0;
  std::span<const LeafRun> runs;
};

/// Where a segment begins.
struct Segment {
  std::uint64_t first_sample = 0;
  std::uint64_t first_leaf = 0;
  bool operator==(const Segment&) const = default;
};

/// A segment is closed at the first leaf boundary at which it has either of these.
inline constexpr std::uint64_t kSegmentSamples = 16384;
inline constexpr std::uint64_t kSegmentLeaves = 4096;
/// No segment has more of either: this bounds what expanding one allocates.
inline constexpr std::uint64_t kMaxSegmentSamples = 65536;

using LeafSink = std::function<void(const LeafLayout&)>;

/// What a leaf's keys say about its place in the tree.
struct LeafKeys {
  std::uint64_t leaf = 0;          ///< its number in key order
  std::uint64_t first_sample = 0;  ///< of its first record
  PageNumber page = 0;
  std::span<const std::byte> first;
  std::span<const std::byte> last;
};

/// Knows something of the keys that the file must hold, so that a leaf can be told from every other
/// one, its older copies included.
class KeyWitness {
 public:
  virtual ~KeyWitness() = default;
  /// Why the leaf is not the one that it is taken for; empty when nothing speaks against it.
  /// `records` is how many it has. Const and safe from many threads.
  virtual std::string contradicts(const LeafKeys& keys, std::uint32_t records) const = 0;
};

/// One thread at a time. Producers of one data set of different processes agree in every detail.
class LeafProducer : private NonCopyable {
 public:
  virtual ~LeafProducer() = default;

  /// "known", "table" or "recipe".
  virtual std::string form() const = 0;
  /// Starts of the segments, then one entry for the end: its numbers are those of all records and
  /// all leaves. Empty data sets have the end only. No segment is empty.
  virtual std::span<const Segment> directory() const = 0;
  /// Hands the leaves of `segment` to `sink`, in order. Throws corrupt where its own data are
  /// impossible, and what `sink` throws. Page numbers are not bounded here: the caller does that.
  virtual void expand(std::size_t segment, const LeafSink& sink) = 0;
  /// What the producer knows of the keys; null when it has the leaves from the tree itself.
  virtual const KeyWitness* witness() const { return nullptr; }
  /// Memory that it holds, in bytes.
  virtual std::uint64_t memory_bytes() const = 0;
};

}  // namespace forebay::lmdb
