// The layout of any tree, compressed: what a scan finds out and what a sidecar of form `table`
// holds.
//
// Segments are encoded one by one (segment_codec.hpp). A group is a run of segments that are equal
// but for where they lie, at a constant distance: their bytes are kept once. Layouts that repeat
// thus take the same few bytes however many records there are.
//
//   varint samples, leaves, groups
//   each group: varint repeat, samples, leaves, base page, bytes; with repeat > 1 also distance
//   the bytes of all groups, one behind the other
//   facts of the keys (key_facts.hpp)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/key_facts.hpp"
#include "format/lmdb/provenance/segment_codec.hpp"

namespace forebay::lmdb {

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

}  // namespace forebay::lmdb
