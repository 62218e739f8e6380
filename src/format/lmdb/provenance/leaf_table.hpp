// The layout of any tree, compressed: what a scan finds out and what a sidecar of form `table`
// holds.
//
// Segments are encoded one by one (SegmentEncoder). A group is a run of segments that are equal
// but for where they lie, at a constant distance: their bytes are kept once. Layouts that repeat
// thus take the same few bytes however many records there are.
//
//   varint samples, leaves, groups
//   each group: varint repeat, samples, leaves, base page, bytes; with repeat > 1 also distance
//   the bytes of all groups, one behind the other
//   facts of the keys (key_facts.hpp)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/byte_stream.hpp"
#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/page.hpp"
#include "format/lmdb/provenance/key_facts.hpp"

namespace forebay::lmdb {

// The leaves of one segment as a few hundred bytes to a few kilobytes.
//
// A writer of LMDB takes pages mostly in file order, so the place of each leaf and each overflow
// run is predicted from what came before it, and only the difference is kept. Six streams of small
// numbers, which zstd then shortens together:
//
//   records of each leaf            | slots that were passed over before each run
//   page of each leaf - prediction  | page of each run - prediction
//   runs of each leaf               | pages of each run
//
// Prediction: the page behind the leaf or run before, in the order leaf, its runs, next leaf. The
// first leaf is predicted to lie at the segment's base page: the bytes do not depend on where the
// segment lies, hence segments of regular layouts are equal byte by byte.
//
//   bytes = length of the six streams together, zstd(6 x length of stream, 6 x stream)

struct EncodedSegment {
  std::uint64_t samples = 0;
  std::uint64_t leaves = 0;
  PageNumber base = 0;
  std::vector<std::byte> bytes;
};

class SegmentEncoder {
 public:
  void add(const LeafLayout& leaf);
  std::uint64_t samples() const { return samples_; }
  std::uint64_t leaves() const { return leaves_; }
  /// What was added since the last call; at least one leaf.
  EncodedSegment finish();

 private:
  std::array<ByteWriter, 6> streams_;
  std::uint64_t samples_ = 0;
  std::uint64_t leaves_ = 0;
  PageNumber base_ = 0;
  PageNumber next_ = 0;
};

/// Hands out the leaves. What is allocated is bounded by `samples` and `leaves`.
/// Throws corrupt when the bytes do not hold exactly that many.
void decode_segment(std::span<const std::byte> bytes, PageNumber base, std::uint64_t samples,
                    std::uint64_t leaves, const LeafSink& sink);

/// Equal segments: number i of `repeat` has its first leaf at page base + i * distance.
struct SegmentGroup {
  std::uint64_t repeat = 1;
  std::uint64_t samples = 0;  ///< of each segment
  std::uint64_t leaves = 0;
  PageNumber base = 0;
  std::uint64_t distance = 0;  ///< modulo 2^64
  std::uint64_t bytes = 0;     ///< length of the encoded segment
};

/// Some or all leaves of a tree, in key order. A value.
class LeafTable {
 public:
  std::uint64_t samples() const { return samples_; }
  std::uint64_t leaves() const { return leaves_; }
  const std::vector<SegmentGroup>& groups() const { return groups_; }
  std::span<const std::byte> bodies() const { return bodies_; }
  const KeyFacts& keys() const { return keys_; }
  bool has_keys() const { return keys_.known(); }
  std::uint64_t memory_bytes() const;

  void append(const EncodedSegment& segment);
  /// The leaves that follow. `part` numbers its samples from 0.
  void append(const LeafTable& part);
  /// What is known of the keys of all leaves appended.
  void set_keys(KeyFacts keys) { keys_ = std::move(keys); }
  /// Leaves out the digests where the layout repeats and the rule of the keys suffices.
  void shorten();

  void write(ByteWriter& out) const;
  /// At most `samples` and `leaves`. Throws corrupt.
  static LeafTable read(ByteReader& in, std::uint64_t samples, std::uint64_t leaves);

 private:
  void check_groups() const;

  std::uint64_t samples_ = 0;
  std::uint64_t leaves_ = 0;
  std::vector<SegmentGroup> groups_;
  std::vector<std::byte> bodies_;
  std::size_t last_body_ = 0;  ///< where the last group's bytes begin
  KeyFacts keys_;
};

/// A leaf as it lies in the file, with its keys.
struct SeenLeaf {
  LeafLayout layout;
  std::span<const std::byte> first_key;
  std::span<const std::byte> last_key;
};

/// Makes a table from leaves in key order, with the memory of one segment.
class LeafTableBuilder {
 public:
  explicit LeafTableBuilder(std::uint16_t tree_flags,
                            std::uint64_t segment_samples = kSegmentSamples,
                            std::uint64_t segment_leaves = kSegmentLeaves)
      : keys_(tree_flags), segment_samples_(segment_samples), segment_leaves_(segment_leaves) {}

  void add(const SeenLeaf& leaf);
  /// Of a leaf whose keys were not looked at; the table then knows nothing of keys.
  void add(const LeafLayout& leaf);
  LeafTable finish();

 private:
  KeyFactsBuilder keys_;
  std::uint64_t leaves_with_keys_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t leaves_ = 0;
  std::uint64_t segment_samples_;
  std::uint64_t segment_leaves_;
  SegmentEncoder segment_;
  LeafTable table_;
};

/// The leaves of a table.
class TableLeaves final : public LeafProducer {
 public:
  explicit TableLeaves(LeafTable table);

  std::string form() const override { return "table"; }
  std::span<const Segment> directory() const override { return directory_; }
  void expand(std::size_t segment, const LeafSink& sink) override;
  const KeyWitness* witness() const override {
    return table_.has_keys() ? &table_.keys() : nullptr;
  }
  std::uint64_t memory_bytes() const override;

  const LeafTable& table() const { return table_; }

 private:
  struct GroupStart {
    std::size_t segment;  ///< number of the group's first segment
    std::size_t body;     ///< where its bytes begin
  };

  LeafTable table_;
  std::vector<Segment> directory_;
  std::vector<GroupStart> starts_;
};

/// `runs` holds the overflow runs of the result. Values that are no samples (named databases) lie
/// in the leaf. Throws what the page's explainer makes of a page that is no leaf, or damaged.
SeenLeaf look_at_leaf(const Page& page, std::uint32_t page_size, std::vector<LeafRun>& runs);

}  // namespace forebay::lmdb
