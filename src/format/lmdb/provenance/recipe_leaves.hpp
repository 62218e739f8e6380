// The leaves of a database that was built by a recipe: replayed, not stored.
//
// A checkpoint a segment lets the replay start anywhere; facts of the keys let it be trusted.
//
//   block recipe, varint segments
//   each segment: varint samples, leaves; block checkpoint (of the state before its first leaf; the
//   first segment needs none)
//   facts of the keys (key_facts.hpp)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/lmdb/leaf_producer.hpp"
#include "format/lmdb/provenance/key_facts.hpp"
#include "format/lmdb/provenance/replay.hpp"

namespace forebay::lmdb {

class RecipeLeaves final : public LeafProducer {
 public:
  /// Replays everything once, for the checkpoints. `keys` of all leaves; digests are left out where
  /// the rule suffices. Throws as Replay.
  RecipeLeaves(const Recipe& recipe, KeyFacts keys, std::uint64_t segment_samples = kSegmentSamples,
               std::uint64_t segment_leaves = kSegmentLeaves);
  /// Reads what write() wrote. Expands nothing. Throws corrupt.
  static std::unique_ptr<RecipeLeaves> read(ByteReader& in);
  void write(ByteWriter& out) const;

  std::string form() const override { return "recipe"; }
  std::span<const Segment> directory() const override { return directory_; }
  void expand(std::size_t segment, const LeafSink& sink) override;
  const KeyWitness* witness() const override { return keys_.known() ? &keys_ : nullptr; }
  std::uint64_t memory_bytes() const override;

  const Recipe& recipe() const { return recipe_; }

 private:
  explicit RecipeLeaves(Recipe recipe) : recipe_(std::move(recipe)) {}
  std::span<const std::byte> checkpoint(std::size_t segment) const;
  void add_checkpoint(std::span<const std::byte> bytes);

  Recipe recipe_;
  KeyFacts keys_;
  std::vector<Segment> directory_{Segment{}};
  std::vector<std::byte> checkpoints_;        ///< one behind the other
  std::vector<std::size_t> checkpoint_ends_;  ///< of each segment's
};

}  // namespace forebay::lmdb
