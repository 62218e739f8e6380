#include "format/lmdb/provenance/recipe_leaves.hpp"

#include <algorithm>

#include "forebay/error.hpp"

namespace forebay::lmdb {

RecipeLeaves::RecipeLeaves(const Recipe& recipe, KeyFacts keys, std::uint64_t segment_samples,
                           std::uint64_t segment_leaves)
    : recipe_(recipe), keys_(std::move(keys)) {
  keys_.drop_digests();
  Replay replay(recipe);
  LeafLayout leaf;
  Segment from, at;
  std::vector<std::byte> state;
  for (;;) {
    const bool boundary = at == from || at.first_sample - from.first_sample >= segment_samples ||
                          at.first_leaf - from.first_leaf >= segment_leaves;
    if (boundary && at.first_leaf > 0) state = replay.checkpoint();
    if (!replay.next(leaf)) break;
    if (boundary) {
      add_checkpoint(state);
      directory_.push_back(at);
      from = at;
    }
    at.first_sample += leaf.records;
    ++at.first_leaf;
    directory_.back() = at;
  }
}

std::span<const std::byte> RecipeLeaves::checkpoint(std::size_t segment) const {
  const std::size_t begin = segment == 0 ? 0 : checkpoint_ends_[segment - 1];
  return std::span(checkpoints_).subspan(begin, checkpoint_ends_[segment] - begin);
}

void RecipeLeaves::add_checkpoint(std::span<const std::byte> bytes) {
  checkpoints_.insert(checkpoints_.end(), bytes.begin(), bytes.end());
  checkpoint_ends_.push_back(checkpoints_.size());
}

void RecipeLeaves::write(ByteWriter& out) const {
  out.block(to_bytes(recipe_));
  out.varint(checkpoint_ends_.size());
  for (std::size_t i = 0; i < checkpoint_ends_.size(); ++i) {
    out.varint(directory_[i + 1].first_sample - directory_[i].first_sample);
    out.varint(directory_[i + 1].first_leaf - directory_[i].first_leaf);
    out.block(checkpoint(i));
  }
  keys_.write(out);
}

std::unique_ptr<RecipeLeaves> RecipeLeaves::read(ByteReader& in) {
  const auto recipe = in.block();
  if (recipe.size() > kMaxRecipeBytes) throw Error(ErrorKind::corrupt, "its recipe is too long");
  std::unique_ptr<RecipeLeaves> leaves(new RecipeLeaves(recipe_from_bytes(recipe)));
  // A segment takes three bytes and more.
  const std::uint64_t segments = in.varint(in.rest().size() / 3);
  Segment at;
  for (std::uint64_t i = 0; i < segments; ++i) {
    const std::uint64_t samples = in.varint(kMaxSegmentSamples);
    const std::uint64_t count = in.varint(samples);
    const auto state = in.block();
    if (count == 0 || state.size() > kMaxCheckpointBytes) {
      throw Error(ErrorKind::corrupt, "its directory is impossible");
    }
    at.first_sample += samples;
    at.first_leaf += count;
    leaves->directory_.push_back(at);
    leaves->add_checkpoint(state);
  }
  leaves->keys_ = KeyFacts::read(in, at.first_leaf);
  return leaves;
}

void RecipeLeaves::expand(std::size_t segment, const LeafSink& sink) {
  Replay replay = segment == 0 ? Replay(recipe_) : Replay(recipe_, checkpoint(segment));
  LeafLayout leaf;
  const std::uint64_t count = directory_[segment + 1].first_leaf - directory_[segment].first_leaf;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!replay.next(leaf)) throw Error(ErrorKind::corrupt, "the recipe ends before its time");
    sink(leaf);
  }
}

std::uint64_t RecipeLeaves::memory_bytes() const {
  return checkpoints_.capacity() + checkpoint_ends_.capacity() * sizeof(std::size_t) +
         directory_.capacity() * sizeof(Segment) + keys_.memory_bytes();
}

}  // namespace forebay::lmdb
