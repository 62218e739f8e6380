// Any bytes as a recipe and a checkpoint: each is refused with an Error or replayed, leaf by leaf
// within bounded time and memory; and what a replay writes itself, it reads again.
//
//   u8 n   n bytes: recipe   the rest: checkpoint
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "forebay/error.hpp"
#include "format/lmdb/provenance/replay.hpp"

namespace {

using namespace forebay;

constexpr int kLeaves = 12;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A leaf has at least one record and, where there are runs, each in its slot.
void check_leaf(const lmdb::LeafLayout& leaf, const lmdb::Recipe& recipe) {
  require(leaf.records >= 1 && leaf.records <= lmdb::max_records_per_leaf(recipe));
  const bool runs = lmdb::footprint(recipe).run_pages != 0;
  require(leaf.runs.size() == (runs ? leaf.records : 0));
  for (std::size_t slot = 0; slot < leaf.runs.size(); ++slot) {
    require(leaf.runs[slot].slot == slot);
  }
}

void replay_some(lmdb::Replay replay) {
  lmdb::LeafLayout leaf;
  for (int i = 0; i < kLeaves; ++i) {
    const std::uint64_t before = replay.position();
    if (!replay.next(leaf)) break;
    check_leaf(leaf, replay.recipe());
    require(replay.position() == before + leaf.records);
    if (i % 4 != 0) continue;
    const auto bytes = replay.checkpoint();
    require(bytes.size() <= lmdb::kMaxCheckpointBytes);
    require(lmdb::Replay(replay.recipe(), bytes).checkpoint() == bytes);
  }
}

template <typename Step>
void attempt(const Step& step) {
  try {
    step();
  } catch (const Error&) {
    // The expected answer to most inputs.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t recipe_size = std::min<std::size_t>(data[0], bytes.size());
  attempt([&] {
    const lmdb::Recipe recipe = lmdb::recipe_from_bytes(bytes.first(recipe_size));
    require(lmdb::recipe_from_bytes(lmdb::to_bytes(recipe)) == recipe);
    // Without a checkpoint nothing of what is replayed was forged, so that nothing may go wrong.
    try {
      replay_some(lmdb::Replay(recipe));
    } catch (const Error&) {
      std::abort();
    }
    replay_some(lmdb::Replay(recipe, bytes.subspan(recipe_size)));
  });
  return 0;
}
